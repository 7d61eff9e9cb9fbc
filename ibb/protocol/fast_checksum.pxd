cimport cython

cdef extern from *:
    """
    #if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
    #include <immintrin.h>
    #define FOLDING static inline __attribute__((target("pclmul,sse4.1")))

    static inline int has_folding(void) {
        __builtin_cpu_init();
        return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.2");
    }

    /* CRC-32 by multiplication without carries, 16 bytes at a time, bits reflected. Source: Gopal and
       others, Fast CRC Computation for Generic Polynomials Using PCLMULQDQ (Intel, 2009); the numbers
       are powers of x modulo the polynomial. */

    #define BY_ONE _mm_set_epi64x(0x0ccaa009e, 0x1751997d0)  /* 16 bytes further, */
    #define BY_TWO _mm_set_epi64x(0x15a546366, 0x0f1da05aa)  /* and 32 */

    FOLDING __m128i fold(__m128i before, __m128i by, __m128i next) {
        return _mm_xor_si128(next, _mm_xor_si128(
            _mm_clmulepi64_si128(before, by, 0x00), _mm_clmulepi64_si128(before, by, 0x11)));
    }

    /* Fold in the bytes of *data* from *at* on; size >= 16, and at <= size. */
    FOLDING __m128i fold_rest(__m128i sum, const unsigned char* data, Py_ssize_t at, Py_ssize_t size) {
        static const signed char places[48] = {
            -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
            0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
            -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
        if (size - at >= 48) {
            __m128i other = _mm_loadu_si128((const __m128i*) (data + at));
            for (at += 16; size - at >= 32; at += 32) {
                sum = fold(sum, BY_TWO, _mm_loadu_si128((const __m128i*) (data + at)));
                other = fold(other, BY_TWO, _mm_loadu_si128((const __m128i*) (data + at + 16)));
            }
            sum = fold(sum, BY_ONE, other);
        }
        for (; size - at >= 16; at += 16)
            sum = fold(sum, BY_ONE, _mm_loadu_si128((const __m128i*) (data + at)));
        if (at < size) {  /* as many bytes of the sum go before as are left: zeros before them count for nothing */
            __m128i end = _mm_loadu_si128((const __m128i*) (data + size - 16));
            __m128i first = _mm_loadu_si128((const __m128i*) (places + size - at));
            __m128i others = _mm_loadu_si128((const __m128i*) (places + size - at + 16));
            sum = fold(_mm_shuffle_epi8(sum, first), BY_ONE,
                       _mm_blendv_epi8(end, _mm_shuffle_epi8(sum, others), first));
        }
        return sum;
    }

    FOLDING unsigned int reduced(__m128i sum) {
        const __m128i low = _mm_setr_epi32(~0, 0, ~0, 0);
        const __m128i by = _mm_set_epi64x(0x0ccaa009e, 0x163cd6124);
        const __m128i barrett = _mm_set_epi64x(0x1f7011641, 0x1db710641);
        __m128i part;
        sum = _mm_xor_si128(_mm_srli_si128(sum, 8), _mm_clmulepi64_si128(sum, by, 0x10));
        part = _mm_clmulepi64_si128(_mm_and_si128(sum, low), by, 0x00);
        sum = _mm_xor_si128(_mm_srli_si128(sum, 4), part);
        part = _mm_clmulepi64_si128(_mm_and_si128(sum, low), barrett, 0x10);
        part = _mm_clmulepi64_si128(_mm_and_si128(part, low), barrett, 0x00);
        return ~(unsigned int) _mm_extract_epi32(_mm_xor_si128(sum, part), 1);
    }

    FOLDING unsigned int folded(const unsigned char* data, Py_ssize_t size) {
        __m128i sum = _mm_loadu_si128((const __m128i*) data);
        return reduced(fold_rest(_mm_xor_si128(sum, _mm_cvtsi32_si128(~0)), data, 16, size));
    }

    FOLDING unsigned int folded_behind(
        unsigned long long first, unsigned long long second, unsigned int third,
        const unsigned char* data, Py_ssize_t size
    ) {
        __m128i sum = _mm_set_epi64x(second, first ^ 0xffffffff);
        __m128i next = _mm_slli_si128(_mm_loadu_si128((const __m128i*) data), 3);
        next = _mm_or_si128(next, _mm_cvtsi32_si128(third));
        return reduced(fold_rest(fold(sum, BY_ONE, next), data, 13, size));
    }
    #else
    static inline int has_folding(void) { return 0; }
    static inline unsigned int folded(const unsigned char* data, Py_ssize_t size) { return 0; }
    static inline unsigned int folded_behind(
        unsigned long long first, unsigned long long second, unsigned int third,
        const unsigned char* data, Py_ssize_t size
    ) { return 0; }
    #endif

    #if defined(__GNUC__) && defined(__x86_64__)
    static inline int has_wide(void) {
        __builtin_cpu_init();
        return __builtin_cpu_supports("avx");
    }

    /* Clear the upper halves of registers that a function has used; *has* is what has_wide says. */
    static inline void leave_wide(int has) {
        if (has)
            __asm__ volatile ("vzeroupper" ::: "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
                "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    }
    #else
    static inline int has_wide(void) { return 0; }
    static inline void leave_wide(int has) { }
    #endif
    """
    int has_folding() noexcept nogil
    int has_wide() noexcept nogil
    void leave_wide(int has) noexcept nogil
    unsigned int folded(const unsigned char* data, Py_ssize_t size) noexcept nogil
    unsigned int folded_behind(unsigned long long first, unsigned long long second, unsigned int third, const unsigned char* data, Py_ssize_t size) noexcept nogil

cdef Py_ssize_t _fold_min, _fold_max
ctypedef unsigned int (*IsaCrc32)(unsigned int, const unsigned char*, unsigned long long) noexcept nogil
ctypedef unsigned int (*IsaCrc32c)(const unsigned char*, int, unsigned int) noexcept nogil

cdef unsigned int _tables[4096]
cdef bint _has_functions, _has_wide
cdef IsaCrc32 _isa_crc32
cdef IsaCrc32c _isa_crc32c

@cython.locals(ones="unsigned int", crc="unsigned int")
cdef unsigned int crc32_at(const unsigned char* data, Py_ssize_t size) noexcept nogil

@cython.locals(ones="unsigned int", crc="unsigned int", tables="const unsigned int*", _=int)
cdef unsigned int crc32_behind(unsigned long long first, unsigned long long second, unsigned int third, const unsigned char* data, Py_ssize_t size) noexcept nogil

cdef unsigned int _eight(const unsigned int* tables, unsigned long long word) noexcept nogil

@cython.locals(ones="unsigned int", crc="unsigned int")
cdef unsigned int crc32c_at(const unsigned char* data, Py_ssize_t size, unsigned int before) noexcept nogil

@cython.locals(at=Py_ssize_t, low="unsigned int")
cdef unsigned int _by_table(const unsigned int* tables, const unsigned char* data, Py_ssize_t size, unsigned int crc) noexcept nogil

@cython.locals(base=int, byte=int, crc="unsigned int", _=int, place=int, before="unsigned int")
cdef void _fill_table(int table, unsigned int polynomial) noexcept

cdef void _adopt(size_t crc32_address, size_t crc32c_address) noexcept
