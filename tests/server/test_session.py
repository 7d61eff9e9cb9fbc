"""Login, commands and limits over a real socket, with good clients and hostile ones."""

import struct
import zlib

import pytest

from ibb.protocol.capabilities import Capability
from ibb.protocol.command import Ping, Query, RegisterSlave, SetOption, Statistics
from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import Gtid
from ibb.protocol.handshake import AuthSwitchRequest, Greeting
from ibb.protocol.native_password import scramble_response
from ibb.protocol.packet import frame
from ibb.protocol.reply import is_eof, is_err, is_ok, parse_err
from ibb.server.config import Config, ConfigError
from ibb.server.server import Server

from .conftest import publish
from .raw_client import RawClient, until_sessions


async def test_the_greeting_is_that_of_a_mariadb_10_11(serve, store):
    server = await serve(store)
    async with await RawClient.connect(server.address) as client:
        greeting = Greeting.parse(await client.packet())
        assert greeting.server_version == "5.5.5-10.11.99-MariaDB-ibb"
        assert greeting.auth_plugin == "mysql_native_password"
        assert all(0x21 <= byte <= 0x7E for byte in greeting.scramble)
        async with await RawClient.connect(server.address) as other:
            second = Greeting.parse(await other.packet())
            assert second.scramble != greeting.scramble
            assert second.connection_id != greeting.connection_id


async def test_the_right_password_logs_in(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        assert await client.value("SELECT USER()") == "repl@localhost"


async def test_a_client_with_another_plugin_is_asked_to_switch(serve, store):
    server = await serve(store)
    for password, wanted in (("secret", is_ok), ("wrong", is_err)):
        async with await RawClient.connect(server.address) as client:
            switch = AuthSwitchRequest.parse(await client.log_in(plugin="caching_sha2_password"))
            assert switch.plugin == "mysql_native_password"
            await client.send(scramble_response(password, switch.nonce), 3)
            assert wanted(await client.packet())


@pytest.mark.parametrize(
    ("user", "password", "used"),
    [("repl", "wrong", "YES"), ("nobody", "secret", "YES"), ("repl", "", "NO")],
)
async def test_behind_a_wrong_password_nothing_is_read_or_answered(
    serve, store, user, password, used
):
    server = await serve(store)
    async with await RawClient.connect(server.address) as client:
        error = parse_err(await client.log_in(user, password))
        assert (error.code, error.sqlstate) == (1045, "28000")
        assert error.message == (
            f"Access denied for user '{user}'@'localhost' (using password: {used})"
        )
        await client.send(Query("SELECT 1").encode())
        await client.send(Ping().encode())
        assert await client.packet() is None
    assert server.questions == 0


async def test_commands_sent_before_the_login_is_answered_are_not_served(serve, store):
    server = await serve(store)
    async with await RawClient.connect(server.address) as client:
        client.writer.write(b"\x09\x00\x00\x00\x03SELECT 1")
        assert (await client.packet())[0] == 10
        assert is_err(await client.packet())
        assert await client.packet() is None
    assert server.questions == 0


async def test_an_account_counts_only_for_its_hosts(serve, store, accounts):
    from ibb.server.login.accounts import make_account

    accounts.add(make_account("remote", "10.%", "secret", []))
    server = await serve(store)
    async with await RawClient.connect(server.address) as client:
        assert is_err(await client.log_in("remote", "secret"))


async def test_a_slow_login_is_cut_off_and_counted(serve, store):
    server = await serve(store, connect_timeout=0.1)
    async with await RawClient.connect(server.address) as client:
        await client.packet()
        client.writer.write(b"\x20")
        assert await client.packet() is None
    assert server.status()["Aborted_connects"] == "1"


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.0\r\n\r\n",
        b"\x00" * 300,
        b"\xff" * 300,
        b"\xff\xff\xff\x01" + b"A" * 300,  # announces 16 MiB
        b"\x05\x00\x00\x01hello",
        struct.pack("<I", 40 | 1 << 24) + struct.pack("<I", 0x8200) + b"\xff" * 36,
    ],
    ids=["http", "zeros", "ones", "huge", "short", "unterminated"],
)
async def test_garbage_is_refused_with_one_log_line_and_others_go_on(serve, store, garbage, capfd):
    server = await serve(store)
    neighbour = await RawClient.logged_in(server)
    async with await RawClient.connect(server.address) as client:
        await client.packet()
        client.writer.write(garbage)
        answer = await client.packet()
        assert is_err(answer)
        assert await client.packet() is None
    assert await neighbour.value("SELECT 1") == "1"
    await neighbour.close()
    assert capfd.readouterr().out.count("client_refused") == 1


async def test_half_a_packet_and_gone_is_one_log_line(serve, store, capfd):
    server = await serve(store)
    async with await RawClient.connect(server.address) as client:
        await client.packet()
        client.writer.write(b"\x50\x00\x00\x01half")
        client.writer.write_eof()
        assert await client.packet() is None
    await until_sessions(server, 0)
    assert capfd.readouterr().out.count("client_refused") == 1


async def test_a_command_above_the_limit_is_refused(serve, store):
    server = await serve(store, max_allowed_packet=2048)
    async with await RawClient.logged_in(server) as client:
        await client.send(Query("SELECT '" + "x" * 1000 + "'").encode())
        for _ in range(5):
            assert not is_err(await client.packet())
        await client.send(Query("SELECT '" + "x" * 3000 + "'").encode())
        assert parse_err(await client.packet()).code == 1153
        assert await client.packet() is None


async def test_packets_out_of_order_end_the_connection(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        await client.send(Ping().encode(), 3)
        assert parse_err(await client.packet()).code == 1156
        assert await client.packet() is None


@pytest.mark.parametrize("size", [10, 2000])
async def test_a_client_that_compresses_unasked_is_sent_away(serve, store, capfd, size):
    server = await serve(store)
    client = await RawClient.connect(server.address)
    async with client:
        await client.log_in("repl", "secret", claims=Capability.COMPRESS)
        plain = frame(Query("SELECT '" + "x" * size + "'").encode(), 0)
        data = plain if size < 50 else zlib.compress(plain)
        before = 0 if size < 50 else len(plain)
        head = len(data).to_bytes(3, "little") + b"\0" + before.to_bytes(3, "little")
        client.writer.write(head + data)
        assert is_err(await client.packet())
        assert await client.packet() is None
    assert "the client compresses, which was not offered" in capfd.readouterr().out


async def test_a_client_that_could_compress_is_served_plain(serve, store):
    server = await serve(store)
    async with await RawClient.connect(server.address) as client:
        await client.log_in("repl", "secret", claims=Capability.COMPRESS)
        assert await client.value("SELECT 7") == "7"


async def test_a_login_may_name_a_database_that_is_elsewhere(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        proof = scramble_response("secret", client.greeting.scramble)
        await client.send(b"\x11repl\0\x14" + proof + b"shop\0")
        assert is_ok(await client.packet())
        await client.query("USE shop")
        assert await client.value("SELECT DATABASE()") == "shop"
        with pytest.raises(SqlError, match="Unknown database 'other'"):
            await client.query("USE other")


async def test_behind_a_malformed_command_the_session_goes_on(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        await client.send(b"\x12\x04")
        assert parse_err(await client.packet()).code == 1835
        assert await client.value("SELECT 7") == "7"


async def test_above_the_limit_there_is_one_place_for_an_administrator(serve, store):
    server = await serve(store, max_connections=2)
    first = await RawClient.logged_in(server)
    second = await RawClient.logged_in(server)
    async with await RawClient.connect(server.address) as third:
        assert await third.log_in() == b"\xff\x10\x04#08004Too many connections"
        assert await third.packet() is None
    await until_sessions(server, 2)
    async with (
        await RawClient.logged_in(server, "admin", "mighty"),
        await RawClient.connect(server.address) as beyond,
    ):
        assert await beyond.packet() == b"\xff\x10\x04Too many connections"
        assert await beyond.packet() is None
    await first.close()
    await until_sessions(server, 1)
    async with await RawClient.logged_in(server) as fourth:
        assert await fourth.value("SELECT 1") == "1"
    await second.close()


async def test_an_idle_session_ends_after_wait_timeout(serve, store):
    server = await serve(store, wait_timeout=0.1)
    async with await RawClient.logged_in(server) as client:
        assert await client.packet() is None


async def test_the_small_commands_are_answered(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        for payload, check in (
            (Ping().encode(), is_ok),
            (b"\x02information_schema", is_ok),
            (b"\x1f", is_ok),
            (SetOption(0).encode(), is_eof),
            (RegisterSlave(5, port=3306).encode(), is_ok),
            (Statistics().encode(), lambda answer: answer.startswith(b"Uptime: ")),
        ):
            await client.send(payload)
            assert check(await client.packet()), payload
            assert client.seq == 1


@pytest.mark.parametrize("code", [0x05, 0x1D, 0xFA])
async def test_an_unknown_command_gets_1047_and_the_session_goes_on(serve, store, code):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        await client.send(bytes([code]) + b"anything")
        assert parse_err(await client.packet()).code == 1047
        assert await client.value("SELECT 1") == "1"


async def test_quit_ends_the_session(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        await client.send(b"\x01")
        assert await client.packet() is None


async def test_replication_needs_its_privilege(serve, store, capfd):
    server = await serve(store)
    async with await RawClient.logged_in(server, "watcher", "looking") as client:
        await client.send(RegisterSlave(5).encode())
        error = parse_err(await client.packet())
        assert (error.code, error.sqlstate) == (1045, "28000")
        assert error.message == "Access denied for user 'watcher'@'%' (using password: YES)"
        dump = await client.dump(non_block=True)
        with pytest.raises(SqlError) as caught:
            await dump.event()
        assert caught.value.code == 1227
        assert caught.value.message == (
            "Access denied; you need (at least one of) the REPLICATION SLAVE privilege(s) for "
            "this operation"
        )
    told = "".join(capfd.readouterr())
    assert told.count("replica_refused") == 2
    assert "replica_server_id=5" in told
    assert "its account lacks REPLICATION SLAVE" in told


async def test_mysqls_gtid_dump_is_served_where_it_names_no_mysql_gtids(serve, store):
    def command(block):
        head = struct.pack("<BHII", 0x1E, 5, 7, 0) + struct.pack("<QI", 4, len(block))
        return head + block

    from .raw_client import Dump

    server = await serve(store)
    for block, count in ((b"", 10), (bytes(8), 10), (b"0-1-7", 3)):
        async with await RawClient.logged_in(server) as client:
            await client.prepare(None)
            await client.send(command(block))
            dump = Dump(client)
            await dump.preamble(rotate_checksum=True)
            assert len(await dump.groups()) == count
    async with await RawClient.logged_in(server) as client:
        await client.send(command(struct.pack("<Q16sQQQ", 1, b"u" * 16, 1, 1, 5)))
        with pytest.raises(SqlError, match="MySQL GTID sets are not supported") as caught:
            await Dump(client).event()
        assert caught.value.code == 1236


async def test_kill_ends_ones_own_other_connection(serve, store):
    server = await serve(store)
    dumping = await RawClient.logged_in(server)
    await dumping.prepare("0-1-10")
    dump = await dumping.dump(server_id=5)
    await dump.preamble(rotate_checksum=True)
    async with await RawClient.logged_in(server) as client:
        await client.query(f"KILL {dumping.greeting.connection_id}")
    with pytest.raises(SqlError) as caught:
        await dump.event()
    assert caught.value.code == 1927
    await dumping.close()


async def test_kill_of_others_needs_an_administrator(serve, store):
    server = await serve(store)
    victim = await RawClient.logged_in(server)
    number = victim.greeting.connection_id
    async with await RawClient.logged_in(server, "watcher", "looking") as client:
        with pytest.raises(SqlError) as caught:
            await client.query(f"KILL {number}")
        assert caught.value.code == 1095
        with pytest.raises(SqlError) as caught:
            await client.query("KILL 4711")
        assert (caught.value.code, caught.value.message) == (1094, "Unknown thread id: 4711")
    async with await RawClient.logged_in(server, "admin", "mighty") as client:
        await client.query(f"KILL CONNECTION {number}")
    assert await victim.packet() is None
    await victim.close()


async def test_replicas_are_listed_while_their_dump_runs(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server, "admin", "mighty") as asking:
        async with await RawClient.logged_in(server) as client:
            await client.send(RegisterSlave(5, "replica-5", port=3310).encode())
            await client.packet()
            assert await asking.rows("SHOW SLAVE HOSTS") == []
            await client.prepare("0-1-10")
            dump = await client.dump(server_id=5)
            await dump.preamble(rotate_checksum=True)
            assert await asking.rows("SHOW REPLICA HOSTS") == [("5", "replica-5", "3310", "99")]
            assert dict(await asking.rows("SHOW STATUS LIKE 'Slaves%'")) == {
                "Slaves_connected": "1",
                "Slaves_running": "1",
            }
        await until_sessions(server, 1)
        assert await asking.rows("SHOW SLAVE HOSTS") == []


async def test_a_store_alone_is_enough_to_serve(store):
    server = Server(store, config=Config(listen="127.0.0.1:0"))
    assert server.server_id >= 1 << 31
    user, password = server.made_up
    await server.start()
    async with await RawClient.logged_in(server, user, password) as client:
        await client.prepare("0-1-9")
        dump = await client.dump(non_block=True)
        await dump.preamble(rotate_checksum=True)
        publish(store, Gtid(0, 1, 11))
        assert (await dump.next_group()).gtid.seq == 10
    await server.stop()


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "[::]", "localhost.example.org", "127.example.org", "127.1", "LOCALHOST."]
)
async def test_without_accounts_no_address_but_loopback_is_served(store, host):
    with pytest.raises(ConfigError, match="loopback"):
        Server(store, config=Config(listen=f"{host}:0"))


@pytest.mark.parametrize("host", ["localhost", "127.0.0.9", "[::1]"])
async def test_without_accounts_loopback_is_served(store, host):
    assert Server(store, config=Config(listen=f"{host}:0")).made_up is not None


async def test_a_unix_socket_is_served_and_a_stale_one_replaced(serve, store, tmp_path):
    import socket

    path = tmp_path / "ibb.sock"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()
    server = await serve(store, socket=str(path))
    async with await RawClient.connect(str(path)) as client:
        assert is_ok(await client.log_in())
        assert await client.value("SELECT USER()") == "repl@localhost"
    await server.stop()
    assert not path.exists()
