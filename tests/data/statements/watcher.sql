# account: watcher
# Who may replicate and watch, but change nothing.
SHOW GRANTS FOR root@localhost
? SHOW MASTER STATUS
? SHOW BINARY LOGS
SHOW SLAVE HOSTS
SHOW SLAVE STATUS
~ SHOW PROCESSLIST
PURGE BINARY LOGS TO 'x'
FLUSH BINARY LOGS
RESET MASTER
KILL 1
STOP SLAVE
SET GLOBAL max_connections=100
SET GLOBAL gtid_slave_pos=''
SET GLOBAL rpl_semi_sync_master_enabled=0
SELECT USER(), CURRENT_USER()
