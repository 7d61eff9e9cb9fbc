# Texts in the character sets of clients.
SET NAMES latin1
SELECT 'ä', HEX('ä'), LENGTH('ä'), CHAR_LENGTH('ä')
SELECT @@character_set_client, @@character_set_connection, @@character_set_results
SET @a = 'ä'
SELECT @a
SET NAMES utf8mb4
SELECT @a
SELECT _latin1 x'E4', _latin1'ä' AS a, _utf8mb4 x'C3A4', _binary 'ä' AS b, _binary x'E4'
SELECT _utf8mb4 x'E4'
SELECT _foo'a'
SELECT 'ä', CHAR_LENGTH('ä'), LENGTH('ä'), HEX('ä')
SET character_set_results = latin1
SELECT 'ä', '😀', _latin1'ä' AS a, USER()
SELECT ä
SET character_set_results = utf8mb4
SET character_set_client = latin1
SELECT 'ä', LENGTH('ä'), @@character_set_connection
SET NAMES utf8mb3
SELECT 'ä', '😀' AS smile, CHAR_LENGTH('😀')
SELECT '€', HEX('€')
SET NAMES ascii
SELECT 'a', 'ä' AS a
SET NAMES binary
SELECT 'ä' AS a, CHAR_LENGTH('ä'), 'a', USER(), @@binlog_checksum
SHOW VARIABLES LIKE 'binlog_checksum'
? SHOW MASTER STATUS
SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci
SELECT @@collation_connection, @@character_set_connection
SET CHARACTER SET latin1
SELECT @@character_set_client, @@character_set_connection, @@character_set_results
SELECT 'ä', HEX('ä')
SET NAMES utf8mb4
SET character_set_connection = latin1
SELECT @@collation_connection, 'ä', HEX('ä')
SET collation_connection = utf8mb4_unicode_ci
SELECT @@character_set_connection, HEX('ä')
SET NAMES nonsense
SET NAMES ucs2
SET character_set_client = utf16
SET character_set_client = NULL
SET character_set_results = NULL
SELECT 'ä'
SET NAMES utf8mb4 COLLATE latin1_bin
SET NAMES utf8mb4 COLLATE utf8mb4_uca1400_ai_ci
SELECT 'ä', @@collation_connection
SET NAMES DEFAULT
SELECT 'ä', CHARSET('a')
[character sets] SET NAMES gbk
