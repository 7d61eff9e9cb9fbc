# What replicas, tools and connectors say when they connect.
# mariadb, mariadb-dump
[identity] select @@version_comment limit 1
SELECT DATABASE(), USER() LIMIT 1
/*!40100 SET @@SQL_MODE='' */
/*!40103 SET TIME_ZONE='+00:00' */
SELECT @@GTID_MODE
SHOW VARIABLES LIKE 'gtid\_mode'
SELECT LOGFILE_GROUP_NAME FROM INFORMATION_SCHEMA.FILES
show variables like 'lower_case_table_names'
# replicas
~ SELECT UNIX_TIMESTAMP()
SELECT @@GLOBAL.SERVER_ID
SHOW VARIABLES LIKE 'SERVER_ID'
SET @master_heartbeat_period= 30000001024
SET @master_binlog_checksum= @@global.binlog_checksum
SELECT @master_binlog_checksum
SELECT @@GLOBAL.gtid_domain_id
SET @mariadb_slave_capability=4
SET @slave_connect_state='0-101-3'
SET @slave_gtid_strict_mode=0
SET @slave_gtid_ignore_duplicates=0
SET NAMES latin1
SELECT @@GLOBAL.COLLATION_SERVER
SELECT @@GLOBAL.TIME_ZONE
SET NAMES utf8mb4
# MariaDB Connector/J, Connector/C, R2DBC
SELECT @@max_allowed_packet, @@wait_timeout
set autocommit=1, sql_mode = concat(@@sql_mode,',STRICT_TRANS_TABLES')
set session_track_schema=1, session_track_system_variables='autocommit'
SELECT @@max_allowed_packet,@@system_time_zone,@@time_zone,@@auto_increment_increment
SET session_track_system_variables = CONCAT(@@session_track_system_variables, ',autocommit')
SELECT @@session.auto_increment_increment AS auto_increment_increment, @@character_set_client AS character_set_client, @@collation_server AS collation_server, @@interactive_timeout AS interactive_timeout, @@sql_mode AS sql_mode
SET character_set_results = NULL
SET NAMES utf8mb4
# Connector/Python, PyMySQL, go, node
SET NAMES 'utf8mb4' COLLATE 'utf8mb4_general_ci'
SET @@session.autocommit = OFF
SELECT @@session.autocommit
SET AUTOCOMMIT = 1
SET sql_safe_updates=1, sql_select_limit=1000, max_join_size=1000000
SET SESSION sql_select_limit=DEFAULT
SELECT @@max_allowed_packet
select @@tx_isolation
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ
SET SESSION net_write_timeout=600
SET SESSION wait_timeout=28800
# readers of changes
SHOW GLOBAL VARIABLES LIKE 'BINLOG_CHECKSUM'
SHOW VARIABLES LIKE 'binlog_format'
SHOW VARIABLES LIKE 'log_bin'
SHOW GLOBAL VARIABLES LIKE 'binlog_row_image'
SHOW GLOBAL VARIABLES LIKE 'GTID_MODE'
SHOW VARIABLES WHERE Variable_name IN ('character_set_server','collation_server')
SELECT @@global.binlog_row_metadata
SELECT COUNT(*) FROM information_schema.columns WHERE table_name='nosuch'
SELECT column_name, collation_name, character_set_name, column_comment, column_type, column_key, ordinal_position FROM information_schema.columns WHERE table_schema='nodb' AND table_name='nosuch' ORDER BY ordinal_position
SHOW FULL COLUMNS FROM nodb.nosuch
SELECT CURRENT_USER()
SELECT @@server_uuid
