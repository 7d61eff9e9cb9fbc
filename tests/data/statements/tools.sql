# What tools send when they connect, and to watch a primary.
# phpMyAdmin
[identity] SELECT @@version, @@version_comment
SET collation_connection = 'utf8mb4_unicode_ci'
SET lc_messages = 'en_US'
SELECT CURRENT_USER()
SHOW SESSION VARIABLES LIKE 'lower_case_table_names'
[identity] SHOW GLOBAL VARIABLES LIKE 'version%'
SHOW VARIABLES LIKE 'language'
[no databases] SELECT `SCHEMA_NAME` FROM `INFORMATION_SCHEMA`.`SCHEMATA`
[grants] SHOW GRANTS
[no databases] SELECT 1 FROM mysql.user LIMIT 1
[grants] SELECT `PRIVILEGE_TYPE` FROM `INFORMATION_SCHEMA`.`USER_PRIVILEGES` WHERE GRANTEE='\'dba\'@\'%\'' AND PRIVILEGE_TYPE='CREATE USER'
SELECT @@lower_case_table_names
SELECT DATABASE()
? SHOW MASTER STATUS
SHOW SLAVE STATUS
? SHOW BINARY LOGS
? SHOW MASTER LOGS
[binlog files] SHOW BINLOG EVENTS LIMIT 0, 25
? SHOW SESSION VARIABLES
? SHOW GLOBAL STATUS WHERE Variable_name NOT LIKE 'Com_%' AND Variable_name NOT LIKE 'Innodb%'
SELECT `CHARACTER_SET_NAME` AS `Charset`, `DESCRIPTION` AS `Description` FROM `information_schema`.`CHARACTER_SETS` WHERE CHARACTER_SET_NAME='utf8mb3'
SELECT `CHARACTER_SET_NAME` AS `Charset`, `COLLATION_NAME` AS `Collation`, `IS_DEFAULT` AS `Default` FROM `information_schema`.`COLLATIONS` WHERE COLLATION_NAME='utf8mb4_bin'
? SHOW STORAGE ENGINES
? SELECT * FROM information_schema.PLUGINS ORDER BY PLUGIN_TYPE, PLUGIN_NAME
~ SHOW FULL PROCESSLIST
KILL 987654
SHOW WARNINGS
SELECT 1 FROM DUAL
# DBeaver
[identity] /* mysql-connector-java-8.0.29 */SELECT  @@session.auto_increment_increment AS auto_increment_increment, @@character_set_client AS character_set_client, @@character_set_connection AS character_set_connection, @@character_set_results AS character_set_results, @@character_set_server AS character_set_server, @@collation_server AS collation_server, @@collation_connection AS collation_connection, @@init_connect AS init_connect, @@interactive_timeout AS interactive_timeout, @@license AS license, @@lower_case_table_names AS lower_case_table_names, @@max_allowed_packet AS max_allowed_packet, @@net_write_timeout AS net_write_timeout, @@performance_schema AS performance_schema, @@sql_mode AS sql_mode, @@system_time_zone AS system_time_zone, @@time_zone AS time_zone, @@transaction_isolation AS transaction_isolation, @@wait_timeout AS wait_timeout
SET character_set_results = NULL
SET autocommit=1
SET SQL_SELECT_LIMIT=DEFAULT
SET sql_mode='STRICT_TRANS_TABLES'
[identity] SELECT @@session.transaction_read_only
SELECT @@session.tx_isolation
? SHOW ENGINES
SHOW CHARSET LIKE 'utf8mb4'
SHOW COLLATION LIKE 'utf8mb4_bin'
SELECT * FROM information_schema.SCHEMATA WHERE SCHEMA_NAME='information_schema'
? SHOW PLUGINS
SHOW VARIABLES LIKE 'lower_case_%'
[no databases] show databases
SELECT @@GLOBAL.character_set_server,@@GLOBAL.collation_server
SHOW FULL TABLES FROM `information_schema` LIKE 'PLUG%'
~ SHOW TABLE STATUS FROM `information_schema` LIKE 'PLUGINS'
SET NAMES utf8mb4
SELECT * FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA='nodb'
SELECT cc.CONSTRAINT_NAME FROM information_schema.TABLE_CONSTRAINTS cc WHERE cc.TABLE_SCHEMA='nodb'
SELECT * FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA='nodb'
SELECT * FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA='nodb' AND TABLE_NAME='t'
SELECT * FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA='nodb'
SELECT * FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA='nodb'
SHOW STATUS LIKE 'Ssl_cipher'
SELECT @@have_ssl, @@have_openssl
# HeidiSQL
SELECT CONNECTION_ID() IS NOT NULL
/*!40101 SET NAMES utf8mb4 */
SET NAMES utf8mb4
? SHOW /*!50002 GLOBAL */ STATUS LIKE 'Uptime'
SHOW VARIABLES LIKE 'sql_mode'
SELECT NOW() IS NOT NULL
? SHOW STATUS
? SHOW /*!50002 GLOBAL */ STATUS WHERE Variable_name='Questions'
SELECT `DEFAULT_COLLATION_NAME` FROM `information_schema`.`SCHEMATA` WHERE `SCHEMA_NAME`='information_schema'
SHOW FUNCTION STATUS WHERE `Db`='information_schema'
SHOW PROCEDURE STATUS WHERE `Db`='information_schema'
SHOW TRIGGERS FROM `information_schema`
SELECT *, EVENT_SCHEMA AS `Db`, EVENT_NAME AS `Name` FROM information_schema.`EVENTS` WHERE `EVENT_SCHEMA`='information_schema'
SELECT * FROM `information_schema`.`COLUMNS` WHERE TABLE_SCHEMA='information_schema' AND TABLE_NAME='PLUGINS' ORDER BY ORDINAL_POSITION
SHOW INDEXES FROM `PLUGINS` FROM `information_schema`
SHOW CREATE TABLE `information_schema`.`PLUGINS`
SELECT QUERY_ID, ID, USER FROM `information_schema`.`PROCESSLIST` WHERE ID=0
USE `information_schema`
SHOW CREATE DATABASE `information_schema`
# mysqldump --master-data --single-transaction
/*!40100 SET @@SQL_MODE='' */
/*!40103 SET TIME_ZONE='+00:00' */
SET SESSION NET_READ_TIMEOUT= 86400, SESSION NET_WRITE_TIMEOUT= 86400
FLUSH /*!40101 LOCAL */ TABLES
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ
START TRANSACTION /*!40100 WITH CONSISTENT SNAPSHOT */
SHOW VARIABLES LIKE 'gtid\_mode'
? SHOW STATUS LIKE 'binlog_snapshot_%'
SHOW VARIABLES LIKE 'ndbinfo\_version'
[unsupported] SET STATEMENT SQL_MODE = '' FOR SELECT 1
SELECT @@GTID_MODE
SELECT @@global.gtid_binlog_pos
UNLOCK TABLES
SET SQL_QUOTE_SHOW_CREATE=1
SET SESSION character_set_results = 'binary'
SET SESSION character_set_results = 'utf8mb4'
SAVEPOINT sp
ROLLBACK TO SAVEPOINT sp
RELEASE SAVEPOINT sp
COMMIT
SET TIME_ZONE='SYSTEM'
# Debezium
? SHOW VARIABLES
SHOW VARIABLES WHERE Variable_name IN ('character_set_server','collation_server')
SHOW GLOBAL VARIABLES LIKE 'binlog_format'
SHOW GLOBAL VARIABLES LIKE 'BINLOG_ROW_IMAGE'
SHOW GLOBAL VARIABLES LIKE 'GTID_MODE'
SHOW GLOBAL VARIABLES WHERE Variable_name = 'GTID_STRICT_MODE'
SELECT @@global.gtid_current_pos
SELECT @@global.gtid_binlog_pos, @@global.gtid_binlog_state
[grants] SHOW GRANTS FOR CURRENT_USER
SHOW SESSION STATUS LIKE 'Ssl_version'
SELECT @@server_id
SHOW GLOBAL VARIABLES LIKE 'net_write_timeout'
SELECT TIMEDIFF(NOW(), UTC_TIMESTAMP())
SELECT CURRENT_TIMESTAMP() IS NOT NULL
SHOW FULL TABLES IN `information_schema` WHERE Table_type = 'BASE TABLE'
SELECT BINLOG_GTID_POS('nofile', 4)
# Maxwell
SHOW VARIABLES LIKE 'log_bin'
SHOW VARIABLES LIKE 'server_id'
SHOW VARIABLES LIKE 'binlog_format'
SHOW VARIABLES LIKE 'binlog_row_image'
SHOW VARIABLES LIKE 'gtid_mode'
SHOW VARIABLES LIKE 'lower_case_table_names'
SELECT @@global.server_id
SHOW VARIABLES LIKE 'server_uuid'
SELECT @@server_uuid
SELECT unix_timestamp() > 0
SELECT 1 as heartbeat
# canal
set wait_timeout=9999999
set net_write_timeout=7200
set net_read_timeout=7200
set names 'binary'
set @master_binlog_checksum= @@global.binlog_checksum
set @slave_uuid=uuid()
SET @mariadb_slave_capability='4'
SET @master_heartbeat_period=15000000000
select @master_binlog_checksum
[identity] select @@version_comment limit 1
show variables like 'binlog_format'
show variables like 'binlog_row_image'
? show master status
[binlog files] show binlog events limit 1
show global variables like 'server_id'
show slave hosts
set names utf8mb4
# go-mysql, mysql-replication, maxwell's connector
SHOW GLOBAL VARIABLES LIKE 'BINLOG_CHECKSUM'
SET @master_binlog_checksum='NONE'
SET @rpl_semi_sync_slave = 1
SHOW VARIABLES LIKE 'rpl_semi_sync_master_enabled'
SET @slave_connect_state='0-1-1'
SET @slave_gtid_strict_mode=1
SET @slave_until_gtid=''
SELECT @@gtid_domain_id
SELECT UNIX_TIMESTAMP() - UNIX_TIMESTAMP()
SELECT column_name, data_type FROM information_schema.columns WHERE table_schema='nodb' ORDER BY ordinal_position
# MaxScale's mariadbmon
SELECT @@global.gtid_current_pos, @@global.gtid_binlog_pos
[fixed settings] SELECT @@global.server_id, @@global.read_only, @@global.gtid_domain_id
SELECT @@global.gtid_domain_id, @@global.rpl_semi_sync_master_enabled
SHOW ALL SLAVES STATUS
SHOW REPLICA STATUS
SELECT @@global.event_scheduler
SELECT 1 FROM information_schema.EVENTS WHERE STATUS = 'SLAVESIDE_DISABLED'
[unsupported] SELECT IS_FREE_LOCK('maxscale_mariadbmonitor')
[unsupported] SELECT IS_USED_LOCK('maxscale_mariadbmonitor')
[unsupported] SELECT GET_LOCK('maxscale_mariadbmonitor', 0)
[unsupported] SELECT RELEASE_LOCK('maxscale_mariadbmonitor')
[unsupported] SELECT DISTINCT * FROM (SELECT P.id,P.user FROM information_schema.PROCESSLIST as P) AS tmp
? SHOW STATUS LIKE 'Uptime'
[unsupported] SET STATEMENT max_statement_time=1 FOR SELECT 1
? SHOW GLOBAL STATUS WHERE Variable_name IN ('Threads_connected', 'Uptime')
# mysqld_exporter
SELECT @@log_bin
? SHOW GLOBAL STATUS
? SHOW GLOBAL VARIABLES
SELECT VERSION()
[identity] SELECT @@version_comment
SHOW SLAVE HOSTS
SELECT UNIX_TIMESTAMP(ts), UNIX_TIMESTAMP(NOW(6)), server_id from `heartbeat`.`heartbeat`
[unsupported] SELECT user, SUBSTRING_INDEX(host, ':', 1) AS host, COALESCE(command, '') AS command, COALESCE(state, '') AS state, COUNT(*) AS processes, SUM(time) AS seconds FROM information_schema.processlist WHERE ID != connection_id() AND TIME >= 0 GROUP BY user, host, command, state
SELECT ENGINE FROM information_schema.ENGINES WHERE ENGINE='nosuch'
[unsupported] SHOW ENGINE INNODB STATUS
SET SESSION lock_wait_timeout = 2
SELECT @@performance_schema
# Orchestrator
[identity] select @@global.hostname, ifnull(@@global.report_host, ''), @@global.server_id, @@global.version, @@global.version_comment, @@global.read_only, @@global.binlog_format, @@global.log_bin, @@global.log_slave_updates
show global variables like 'rpl_semi_sync_%'
show global status like 'rpl_semi_sync_%'
~ select @@global.port, ifnull(nullif(@@global.report_port, 0), @@global.port)
[unsupported] select count(*) > 0 and MAX(User_name) != '' from mysql.slave_master_info
select @@global.gtid_mode, @@global.server_uuid, @@global.gtid_executed, @@global.gtid_purged, @@global.master_info_repository = 'TABLE', @@global.binlog_row_image
[unsupported] select max(time) from information_schema.processlist
? show binary logs
select 1 as test_connection
select unix_timestamp(now(6)) > 0
# replication-manager
SELECT @@report_host
SELECT @@global.gtid_slave_pos
SHOW VARIABLES LIKE 'gtid_strict_mode'
SELECT * FROM information_schema.plugins WHERE plugin_name='nosuch'
SELECT Id, User, Host, Db AS `database`, Command, Time_ms AS time, State, Info FROM information_schema.processlist WHERE id=0
SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE user='nobody'
[no databases] SELECT CONCAT(user,'@',host) FROM mysql.user
? SHOW STATUS LIKE 'Slave_heartbeat_period'
FLUSH TABLES
FLUSH NO_WRITE_TO_BINLOG ENGINE LOGS
# pt-heartbeat, pt-slave-find, pt-table-checksum
SELECT @@server_id /*!50038 , @@hostname*/
SET @@SQL_QUOTE_SHOW_CREATE = 1/*!40101, @@SQL_MODE='NO_AUTO_VALUE_ON_ZERO,STRICT_TRANS_TABLES'*/
SHOW VARIABLES LIKE 'wait\_timeout'
SET SESSION wait_timeout=10000
SELECT @@SQL_MODE
[identity] SHOW VARIABLES LIKE 'version%'
SELECT CRC32('test-string')
SHOW TABLES FROM `heartbeat` LIKE 'heartbeat'
[grants] SHOW GRANTS FOR CURRENT_USER()
/*!40101 SET @OLD_SQL_MODE := @@SQL_MODE, @@SQL_MODE := '', @OLD_QUOTE := @@SQL_QUOTE_SHOW_CREATE, @@SQL_QUOTE_SHOW_CREATE := 1 */
SELECT @OLD_QUOTE
SELECT CONCAT(@@hostname, @@port) IS NOT NULL
SET @@binlog_format = 'STATEMENT'
[unsupported] SELECT GREATEST(1, 2), LEAST('a','b'), TRUNCATE(1.9, 0), MOD(5,3), SIGN(-2)
