# Expressions: values, and the types and lengths that are declared for them.
SELECT 1
SELECT -1
SELECT 1+1
SELECT 1.5
SELECT 1e3
SELECT 'abc'
SELECT ''
SELECT NULL
# SELECT TRUE is a column of length 1 up to 10.11.18, of length 5 since
SELECT 1=1
SELECT 2*3, 5-7, 7/2, 7 DIV 2, 7%2, 7 MOD 2
SELECT 9999999999
SELECT 99999999999999999999
SELECT 9999999999+1
SELECT 9223372036854775807+1
SELECT 'a'+1
SHOW WARNINGS
SELECT 1/0
SHOW WARNINGS
SELECT 'a'='A', 'a' LIKE 'A%', NOT 1, 1 AND 0, 1 OR 0
SELECT 1 IN (1,2), 1 BETWEEN 0 AND 2, NULL IS NULL, 1 IS NOT NULL
SELECT IF(1,'a','b'), IFNULL(NULL,5), COALESCE(NULL,'x'), NULLIF(1,1)
SELECT CASE WHEN 1 THEN 'x' ELSE 'yy' END
SELECT CONCAT('a','b',1), UPPER('a'), LOWER('ABC'), LENGTH('abc'), CHAR_LENGTH('abc')
SELECT SUBSTRING('abcdef',2,3), LEFT('abc',2), RIGHT('abc',1), REPLACE('abc','b','x'), TRIM(' a ')
SELECT HEX('abc'), UNHEX('61'), HEX(255), ABS(-3), GREATEST(1,2), LEAST(1,2)
SELECT FLOOR(1.5), CEIL(1.5), ROUND(1.5)
SELECT FLOOR(1.5e0), CEIL(-1.5e0), FLOOR('2.5')
SELECT x'6162', 0x6162, b'1'
SELECT 1 AS a, 2 b, 3 'c d', 4 "e"
SELECT 1 FROM DUAL
SELECT '😀', LENGTH('yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy')
SELECT 1 LIMIT 0
SELECT 1 ORDER BY 1
SELECT DISTINCT 1
SELECT COUNT(*)
SELECT COUNT(*), 1
SELECT 1 <=> NULL, 1 <> 2, 1 != 2, 3 XOR 1, !0, ~0, 5&3, 5|3, 5^3, 1<<3
SELECT 10/3, 1.25*3, 2.5+1, 1-0.25, 10%3.5
SELECT NULL=1, CONCAT(NULL,'a')
SELECT CAST(1 AS CHAR), CAST('12' AS SIGNED), CAST('12' AS UNSIGNED), CAST(1.5 AS DECIMAL(10,2))
SELECT CONVERT('a' USING utf8mb4)
SELECT DATE '2024-01-01', TIMESTAMP '2024-01-01 12:30:00'
SELECT '2024-01-01' + INTERVAL 1 MONTH
~ SELECT NOW() - INTERVAL 1 DAY
~ SELECT NOW(), CURDATE(), UTC_TIMESTAMP(), CURRENT_TIMESTAMP, SYSDATE(), CURTIME()
~ SELECT UNIX_TIMESTAMP()
SELECT FROM_UNIXTIME(0)
SELECT FROM_UNIXTIME(-1), FROM_UNIXTIME(NULL)
SELECT MD5('a'), SHA1('a'), SLEEP(0)
~ SELECT UUID(), RAND()
SELECT VERSION(), USER(), CURRENT_USER(), CURRENT_USER, DATABASE(), SCHEMA()
~ SELECT CONNECTION_ID()
SELECT ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID()
SELECT @x:='abc'
SET @d=1.5, @f=1e0, @s='abc', @i=7
SELECT @d, @f, @s, @i, @never
SELECT /*!50000 1 */ + /*M! 2 */
SELECT USER() LIKE '%', @@version LIKE '10%'
[unsupported] SELECT DATE_FORMAT('2024-01-01','%Y')
[unsupported] SELECT 1 UNION SELECT 2
[unsupported] SELECT (SELECT 1)
[unsupported] SELECT a FROM (SELECT 1 a) t
[unsupported] SELECT 1 INTO @q
[unsupported] WITH x AS (SELECT 1) SELECT * FROM x
[unsupported] VALUES (1)
SELECT MOD(5,3), MOD(5.5,2), MOD(5,0)
SHOW WARNINGS
SELECT CRC32('test-string'), CRC32(NULL), CRC32('ä')
SELECT LOCATE('b','abc'), LOCATE('b','abcb',3), LOCATE('x','abc'), LOCATE(NULL,'a'), INSTR('abc','C'), LOCATE('','abc'), LOCATE('a','abc',0)
SELECT REVERSE('abc')
SELECT SHA2('a',256), SHA2('a',0), SHA2('a',512), SHA2(NULL,256)
SELECT LOCATE('a')
SELECT LOCATE(5, 15), LOCATE('B', 'abB' , 3)
