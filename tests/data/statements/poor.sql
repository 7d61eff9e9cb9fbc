# account: poor
# Without any privilege.
SHOW MASTER STATUS
SHOW BINARY LOGS
SHOW BINLOG EVENTS
SHOW SLAVE HOSTS
SHOW SLAVE STATUS
SHOW ALL SLAVES STATUS
PURGE BINARY LOGS TO 'x'
FLUSH BINARY LOGS
FLUSH LOGS
FLUSH PRIVILEGES
FLUSH TABLES
FLUSH STATUS, HOSTS
FLUSH TABLES nodb.x
FLUSH TABLES information_schema.processlist
RESET QUERY CACHE
SHOW CREATE USER dba
RESET MASTER
RESET SLAVE
CHANGE MASTER TO MASTER_PORT=1
START SLAVE
STOP SLAVE
KILL 99999
SET GLOBAL max_connections=100
SET GLOBAL gtid_slave_pos=''
SET GLOBAL gtid_binlog_state=''
SET GLOBAL binlog_checksum=CRC32
SET GLOBAL read_only=1
SET GLOBAL binlog_format=ROW
SET GLOBAL binlog_row_image=FULL
SET GLOBAL log_bin_compress=0
SET GLOBAL rpl_semi_sync_slave_enabled=0
SET GLOBAL max_connect_errors=100
SET GLOBAL require_secure_transport=0
SET GLOBAL slave_parallel_threads=0
SET GLOBAL secure_auth=1
SET pseudo_thread_id=5
SET SESSION binlog_row_image=FULL
SET binlog_annotate_row_events=1
FLUSH PRIVILEGES
FLUSH TABLES
FLUSH STATUS
FLUSH ERROR LOGS
FLUSH QUERY CACHE
FLUSH RELAY LOGS
RESET QUERY CACHE
START ALL SLAVES
STOP ALL SLAVES
SHOW RELAYLOG EVENTS
SET GLOBAL sync_binlog=1
SET GLOBAL wait_timeout=1000
SET GLOBAL connect_timeout=10
SET GLOBAL server_id=101
SET server_id=101
SET sql_log_bin=1
SET skip_replication=1
SET GLOBAL slave_net_timeout=60
SET GLOBAL gtid_strict_mode=0
SET GLOBAL gtid_domain_id=0
SET GLOBAL sql_mode=''
SET GLOBAL rpl_semi_sync_master_enabled=0
SET GLOBAL rpl_semi_sync_master_timeout=10
~ SHOW PROCESSLIST
[grants] SHOW GRANTS
SHOW GRANTS FOR dba
SHOW DATABASES
SELECT @@gtid_binlog_pos
SELECT USER(), CURRENT_USER()
SELECT MASTER_GTID_WAIT('',0)
SET @@global.max_binlog_size=4096
SET @@global.binlog_expire_logs_seconds=0
SET @@global.expire_logs_days=0
