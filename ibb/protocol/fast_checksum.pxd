cimport cython

cdef extern from *:
    """
    static int has_sse(void) {
    #if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
        __builtin_cpu_init();
        return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.2");
    #else
        return 0;
    #endif
    }
    """
    int has_sse() noexcept nogil

ctypedef unsigned int (*IsaCrc32)(unsigned int, const unsigned char*, unsigned long long) noexcept nogil
ctypedef unsigned int (*IsaCrc32c)(const unsigned char*, int, unsigned int) noexcept nogil

cdef unsigned int _tables[4096]
cdef bint _has_functions
cdef IsaCrc32 _isa_crc32
cdef IsaCrc32c _isa_crc32c

@cython.locals(ones="unsigned int")
cdef unsigned int crc32_at(const unsigned char* data, Py_ssize_t size) noexcept nogil

@cython.locals(ones="unsigned int", crc="unsigned int", tables="const unsigned int*", _=int)
cdef unsigned int crc32_behind(unsigned long long first, unsigned long long second, unsigned int third, const unsigned char* data, Py_ssize_t size) noexcept nogil

cdef unsigned int _eight(const unsigned int* tables, unsigned long long word) noexcept nogil

@cython.locals(ones="unsigned int")
cdef unsigned int crc32c_at(const unsigned char* data, Py_ssize_t size) noexcept nogil

@cython.locals(at=Py_ssize_t, low="unsigned int")
cdef unsigned int _by_table(const unsigned int* tables, const unsigned char* data, Py_ssize_t size, unsigned int crc) noexcept nogil

@cython.locals(base=int, byte=int, crc="unsigned int", _=int, place=int, before="unsigned int")
cdef void _fill_table(int table, unsigned int polynomial) noexcept

cdef void _adopt(size_t crc32_address, size_t crc32c_address) noexcept
