# What the tables of information_schema look like, and SELECT in its rarer forms.
DESC information_schema.processlist
DESCRIBE information_schema.processlist id
DESCRIBE information_schema.processlist '%TIME%'
EXPLAIN information_schema.processlist
DESC information_schema.nosuch
DESC nodb.x y
SHOW COLUMNS FROM information_schema.nosuch
SHOW COLUMNS FROM information_schema.processlist LIKE 'ID'
SHOW COLUMNS FROM processlist FROM information_schema
SHOW FIELDS IN processlist IN information_schema
SHOW COLUMNS FROM processlist FROM nodb
SHOW COLUMNS FROM nodb.x LIKE 'a'
SHOW FULL COLUMNS FROM information_schema.schemata WHERE Field='SCHEMA_NAME'
SHOW FULL COLUMNS FROM information_schema.columns LIKE 'C%'
SHOW EXTENDED COLUMNS FROM information_schema.schemata
SHOW INDEX FROM information_schema.processlist
SHOW KEYS FROM processlist FROM information_schema WHERE Key_name='PRIMARY'
SHOW INDEXES IN information_schema.nosuch
SHOW INDEX FROM nodb.x
SHOW CREATE TABLE information_schema.processlist
SHOW CREATE TABLE information_schema.TABLES
SHOW CREATE TABLE information_schema.nosuch
SHOW CREATE TABLE nodb.x
SHOW CREATE VIEW information_schema.processlist
SHOW CREATE VIEW information_schema.nosuch
SELECT * FROM information_schema.columns WHERE table_name='PROCESSLIST' ORDER BY ORDINAL_POSITION
SELECT * FROM information_schema.columns WHERE table_name='FILES' ORDER BY ORDINAL_POSITION
SELECT * FROM information_schema.columns WHERE table_name='TRIGGERS' ORDER BY ORDINAL_POSITION
SELECT COLUMN_NAME, DATA_TYPE FROM information_schema.columns WHERE table_schema='nodb'
? SHOW PACKAGE STATUS
? SHOW PACKAGE BODY STATUS
SHOW RELAYLOG 'x' EVENTS
[grants] SHOW CREATE USER
[grants] SHOW CREATE USER CURRENT_USER
[grants] SHOW CREATE USER 'watcher'@'%'
SHOW CREATE USER nobody
SHOW LOCALES
[unsupported] SELECT * FROM information_schema.INNODB_TRX
[unsupported] SELECT 1 UNION SELECT 2
[unsupported] (SELECT 1)
[unsupported] VALUES (1),(2)
[unsupported] WITH x AS (SELECT 1) SELECT * FROM x
[unsupported] SELECT user, COUNT(*) FROM information_schema.processlist GROUP BY user
[unsupported] EXPLAIN FOR CONNECTION 5
[unsupported] SHOW EXPLAIN FOR 1
[no databases] SELECT host FROM mysql.user LIMIT 1
SELECT @@`server_id`, @@global.`server_id`
SELECT \N, 1 IS \N, \N IS NULL
SELECT 1 FOR UPDATE
SELECT 1 LOCK IN SHARE MODE
SELECT SQL_BUFFER_RESULT 1
SELECT HIGH_PRIORITY SQL_NO_CACHE 1
SELECT 1 LIMIT ROWS EXAMINED 5
SELECT 1 FETCH FIRST 1 ROWS ONLY
SELECT 1 OFFSET 1 ROWS
SELECT 1 OFFSET 0 ROWS FETCH NEXT ROW ONLY
SELECT -@@server_id, @@server_id+1, @@server_id-1, @@server_id*2, -(1), -@@wait_timeout
SELECT .5, 0.5, -.5, 00.5, 1., 5.50
SELECT SLEEP(NULL), SLEEP(0)
SELECT CURRENT_ROLE(), CURRENT_ROLE
EXECUTE IMMEDIATE 'SELECT ?' USING 5
EXECUTE IMMEDIATE CONCAT('SELECT ', 1)
EXECUTE IMMEDIATE 'SELECT ?'
EXECUTE IMMEDIATE 'garbage'
EXECUTE IMMEDIATE 'EXECUTE k'
EXECUTE IMMEDIATE 'KILL 999999'
EXECUTE IMMEDIATE NULL
PREPARE k FROM 'KILL 999999'
EXECUTE k
PREPARE k FROM 'EXECUTE k'
SELECT COUNT(DISTINCT user) FROM information_schema.processlist WHERE id = CONNECTION_ID()
SELECT COUNT(DISTINCT user, command) FROM information_schema.processlist WHERE id = CONNECTION_ID()
SELECT COUNT(DISTINCT table_schema), COUNT(DISTINCT table_type) FROM information_schema.tables WHERE table_schema='information_schema'
SELECT COUNT(DISTINCT 1, NULL), COUNT(DISTINCT NULL), COUNT(NULL), COUNT(1), COUNT(*)
[unsupported] SELECT SUM(DISTINCT 1)
[unsupported] SELECT COUNT(DISTINCT 1) + 1
SHOW CREATE DATABASE information_schema
