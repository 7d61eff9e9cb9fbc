# What is no SQL, and what is about tables.
SELECT * FROM t
SELECT * FROM nodb.t
SELECT nocol
SELECT a.b
SELECT nofunc(1)
SELECT mysql.nofunc(1)
SELECT CONCAT()
SELECT VERSION(1)
SELECT GTID_SUBSET('a','b')
SELECT *
SELECT * FROM dual
SELECT INTERVAL 1 DAY
CREATE TABLE t(a int)
INSERT INTO t VALUES(1)
UPDATE t SET a=1
DELETE FROM t
DROP TABLE t
DROP TABLE nodb.t
ALTER TABLE nodb.t ADD a INT
TRUNCATE nodb.t
LOCK TABLES nodb.t READ
DESCRIBE nodb.t
CALL nodb.p()
CALL p()
[unsupported] DROP TABLE IF EXISTS nodb.t
[unsupported] CREATE DATABASE information_schema
[unsupported] ANALYZE TABLE nodb.t
[unsupported] CHECKSUM TABLE nodb.t
[unsupported] EXPLAIN SELECT 1
[unsupported] XA RECOVER
[unsupported] HANDLER x OPEN
[unsupported] LOAD DATA INFILE 'x' INTO TABLE nodb.t
garbage
SELEC 1
SELECT
SELECT 1 +
SELECT 'open
SELECT (1
SELECT 1,
SELECT 1 2 3
SELECT 1;;
SET NAMES 'utf8mb4' x
USE information_schema
CREATE TABLE t(a int)
INSERT INTO t VALUES(1)
UPDATE t SET a=1
DELETE FROM t
DROP TABLE t
SELECT * FROM nosuch
