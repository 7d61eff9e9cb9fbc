# SET of several is all or nothing, and sees what was before; a variable keeps its type in a statement.
SET @a=1, @b=5
SET @a=2, @b=@a+1
SELECT @a, @b
SET @x=3
SET @x=7, nosuch=2
SELECT @x
SET @x=8, autocommit='abc'
SELECT @x, @@autocommit
SET @x=9, autocommit=0, sql_mode='NOPE'
SELECT @x, @@autocommit
SET autocommit=0, @z=@@autocommit
SELECT @z, @@autocommit
SET autocommit=1
SET @q=4
SET @q := 1, @q := @q + 1
SELECT @q
SET NAMES latin1, @n=@@character_set_client
SELECT @n
SET @n=@@character_set_client, NAMES utf8mb4
SELECT @n
BEGIN
SET gtid_domain_id=5
SET gtid_seq_no=5
SET @@session.gtid_domain_id=DEFAULT
COMMIT
SET gtid_domain_id=DEFAULT
SELECT @p := 5, @p
SELECT @p := 'a', @p
SELECT @p
SET @r=1
SELECT @r := @r + 1, @r := @r + 1, @r
