# Transactions, statements prepared by name, databases: the chatter of connectors.
SELECT 1; SELECT 2
USE nodb
[no databases] USE mysql
USE information_schema
SELECT DATABASE()
USE x y
BEGIN
START TRANSACTION
START TRANSACTION READ ONLY
START TRANSACTION WITH CONSISTENT SNAPSHOT
COMMIT
ROLLBACK
COMMIT AND CHAIN
ROLLBACK AND NO RELEASE
SAVEPOINT a
ROLLBACK TO a
RELEASE SAVEPOINT a
BEGIN
SAVEPOINT a
ROLLBACK TO a
RELEASE SAVEPOINT a
ROLLBACK TO nosuch
ROLLBACK
SET TRANSACTION ISOLATION LEVEL READ COMMITTED
SET SESSION TRANSACTION READ ONLY
SET TRANSACTION NONSENSE
SET SESSION TRANSACTION READ WRITE
DO 1
DO SLEEP(0)
DO nofunc()
PREPARE s FROM 'SELECT 1'
EXECUTE s
DEALLOCATE PREPARE s
EXECUTE s
BEGIN
FLUSH HOSTS
BEGIN
STOP SLAVE
RESET QUERY CACHE
UNLOCK TABLES
/* x */
-- x
;
# What a session obeys of its own settings.
SET sql_select_limit=1
SELECT collation_name FROM information_schema.collations WHERE collation_name='binary' OR collation_name='utf8mb4_bin' ORDER BY 1
SHOW VARIABLES LIKE 'rpl_semi_sync_master_%'
SELECT COUNT(*) FROM information_schema.processlist WHERE id=CONNECTION_ID()
SELECT collation_name FROM information_schema.collations WHERE collation_name='binary' OR collation_name='utf8mb4_bin' ORDER BY 1 LIMIT 2
SET sql_select_limit=0
SELECT 1
SET sql_select_limit=DEFAULT
SELECT 1
SET max_statement_time=0.1
SELECT SLEEP(5)
SHOW WARNINGS
SELECT 1
SET max_statement_time=0
SELECT SLEEP(0.01)
# Warnings stay until there are others, or a table is used.
SELECT 'a'+1
SELECT 1
SHOW WARNINGS
SELECT @@warning_count, @@error_count
SET @a=1
SHOW BINLOG STATUS LIKE 'x'
SHOW GRANTS FOR nobody
SHOW WARNINGS
BEGIN
COMMIT
DO 1
SHOW COUNT(*) ERRORS
SELECT 'b'+1, 'c'+1
SHOW WARNINGS
SHOW VARIABLES LIKE 'nosuch'
SHOW WARNINGS
SELECT nosuch
SELECT 1
SHOW ERRORS
SELECT COUNT(*) FROM information_schema.processlist WHERE id=0
SHOW ERRORS
