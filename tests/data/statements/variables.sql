# System variables, read and set.
SELECT @@version, @@server_id, @@hostname, @@autocommit, @@sql_mode, @@max_allowed_packet
[identity] SELECT @@version_comment
[identity] SELECT @@license
SELECT @@global.gtid_domain_id, @@session.gtid_domain_id, @@gtid_binlog_pos, @@gtid_current_pos, @@gtid_slave_pos, @@gtid_binlog_state
SELECT @@tx_isolation, @@wait_timeout, @@character_set_client, @@collation_connection, @@time_zone
SELECT @@system_time_zone, @@binlog_format, @@expire_logs_days, @@sync_binlog, @@log_bin
[fixed settings] SELECT @@read_only
[fixed settings] SET GLOBAL sync_binlog=100
SET GLOBAL sync_binlog=1
SELECT @@sync_binlog
SELECT @@long_query_time, @@sql_select_limit, @@last_insert_id, @@binlog_checksum, @@init_connect
~ SELECT @@timestamp, @@pseudo_thread_id, @@port
SELECT @@character_set_results, @@collation_server, @@have_ssl
SELECT @@sql_mode AS m, 1
SELECT @@nosuch
SELECT @@global.nosuch
SELECT @@session.server_id
SELECT @@global.autocommit
SELECT @@local.autocommit
SELECT @@global.identity
SELECT @@session.gtid_binlog_pos
SHOW VARIABLES LIKE 'server_id'
SHOW VARIABLES WHERE Variable_name='server_id'
SHOW VARIABLES LIKE 'nosuch'
SHOW VARIABLES WHERE nocol=1
SHOW VARIABLES LIKE 'gtid_binlog_pos'
SHOW GLOBAL VARIABLES LIKE 'binlog_checksum'
SHOW VARIABLES LIKE 'rpl_semi_sync_master_%'
SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_master_clients'
SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_master_status'
~ SHOW GLOBAL STATUS LIKE 'Uptime'
~ SHOW STATUS LIKE 'Threads_connected'
SHOW STATUS LIKE 'nosuch'
SET NAMES utf8mb4
SET NAMES klingon
SET NAMES utf8mb4 COLLATE utf8mb4_bin
SET NAMES utf8mb4 COLLATE latin1_bin
SET NAMES utf8mb4 COLLATE nocoll
SET NAMES 'utf8'
SET NAMES DEFAULT
SET NAMES
SET CHARACTER SET utf8
SET NAMES utf8mb4
SET autocommit=0
SET autocommit=1
SET autocommit='maybe'
SET autocommit
SET nosuch=1
SET @@nosuch=1
SET GLOBAL nosuch=1
SET SESSION server_id=5
SET server_id=5
SET GLOBAL server_id='a'
SET GLOBAL autocommit=1
SET GLOBAL gtid_binlog_pos='0-1-1'
SET GLOBAL gtid_binlog_state='garbage'
SET GLOBAL gtid_slave_pos='garbage'
[slave position] SET GLOBAL gtid_slave_pos=''
SET wait_timeout='abc'
SET wait_timeout=-1
SHOW WARNINGS
SET wait_timeout=99999999999
SHOW WARNINGS
[session settings] SET sql_mode='ANSI'
SET sql_mode=DEFAULT
SET sql_mode='BAD'
SET GLOBAL max_connections=1
SHOW WARNINGS
SET GLOBAL max_connections=512
SET GLOBAL version='x'
SET version='x'
SET GLOBAL wait_timeout=77
SELECT @@global.wait_timeout, @@session.wait_timeout
SET GLOBAL wait_timeout=DEFAULT
SELECT @@global.wait_timeout
SET GLOBAL lock_wait_timeout=7, @x=1, net_retry_count=8, SESSION lock_wait_timeout=5, net_retry_count=6
SELECT @@global.lock_wait_timeout, @@lock_wait_timeout, @@global.net_retry_count, @@net_retry_count
SET lock_wait_timeout=DEFAULT
SELECT @@lock_wait_timeout
SET GLOBAL lock_wait_timeout=DEFAULT, net_retry_count=DEFAULT
SET GLOBAL time_zone='nozone'
SET GLOBAL sql_mode='loose'
SET GLOBAL character_set_server='klingon'
SET collation_server='klingon'
SET character_set_client=NULL
SET version=DEFAULT
SET max_connections=DEFAULT
SET SESSION max_allowed_packet=4096
SET GLOBAL max_connect_errors=0
SHOW WARNINGS
SET GLOBAL max_connect_errors=DEFAULT
SHOW VARIABLES LIKE 'max_connect%'
SHOW VARIABLES LIKE 'ssl%'
SHOW VARIABLES LIKE 'slave_parallel%'
SELECT @@ssl_ca, @@tls_version, @@require_secure_transport, @@secure_auth, @@slave_type_conversions
SET GLOBAL last_insert_id=1
SET max_connections=5
SET character_set_results=NULL
SET character_set_results=utf8
SET character_set_client=klingon
SET collation_connection=nocoll
SET NAMES utf8mb4
SET time_zone='+00:00'
SET time_zone='nozone'
SET time_zone='SYSTEM'
SET tx_isolation='READ-COMMITTED'
SET tx_isolation='X'
SET sql_log_bin=0
SET sql_log_bin=1
SET time_zone='+13:01'
SET time_zone='-13:00'
SET time_zone='+5:7'
SET time_zone='+05:30', timestamp=1000000000.25
SELECT NOW(), UNIX_TIMESTAMP(), @@timestamp, CURDATE(), UTC_TIMESTAMP(), SYSDATE() > NOW()
SELECT FROM_UNIXTIME(0), UNIX_TIMESTAMP('2024-01-01 00:00:00'), @@time_zone
SET time_zone=DEFAULT
[session settings] SET time_zone='UTC'
SET time_zone='SYSTEM'
SET timestamp=-1
SHOW WARNINGS
SET timestamp='a'
SET timestamp=0
SELECT @@timestamp > 1000000001
SET max_statement_time=-1
SHOW WARNINGS
SELECT @@max_statement_time
SET @x=1, @y='a'
SET @x
SET
SET GLOBAL rpl_semi_sync_master_timeout=5000
SELECT @@rpl_semi_sync_master_timeout
SET GLOBAL rpl_semi_sync_master_timeout=DEFAULT
SELECT @@rpl_semi_sync_master_timeout
SET GLOBAL rpl_semi_sync_master_timeout=10000
SET GLOBAL rpl_semi_sync_master_enabled=ON
SHOW STATUS LIKE 'Rpl_semi_sync_master_status'
SET GLOBAL rpl_semi_sync_master_enabled=OFF
SET rpl_semi_sync_master_enabled=1
SET GLOBAL rpl_semi_sync_master_wait_no_slave=OFF
SET GLOBAL rpl_semi_sync_master_wait_no_slave=ON
SET ROLE NONE
[unsupported] SET PASSWORD='x'
[unsupported] SET STATEMENT max_statement_time=1 FOR SELECT 1
