"""Who may talk to the server, and that its pages talk to nobody else."""

import asyncio
import http.client
import json
import socket

import pytest
from explore.driving import TOKEN, App, Tab
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.explore.server import Guard

OWN = "127.0.0.1:8470"
COOKIE = f"fedaccord_8470={TOKEN}"


def ask(headers, *, kind="http", path="/", query=f"token={TOKEN}", listens="127.0.0.1"):
    """Ask a guard on port 8470, and return its first answer and whether it passed the request."""
    sent, passed = [], []

    async def application(scope, receive, send):
        passed.append(scope)
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "websocket.connect"}

    lines = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": kind, "path": path, "query_string": query.encode(), "headers": lines}
    asyncio.run(Guard(application, host=listens, port=8470, token=TOKEN)(scope, receive, send))
    return sent[0], bool(passed)


def passes(headers, **request):
    return ask(headers, **request)[1]


def test_a_page_needs_the_token_in_its_address():
    assert passes({"host": OWN})
    for query in ("", "token=", f"token={TOKEN}x", f"token={TOKEN[:-1]}", "token=é"):
        answer, passed = ask({"host": OWN, "cookie": COOKIE}, query=query)
        assert not passed and answer["status"] == 403


def test_scripts_and_websockets_need_the_cookie():
    for kind in ("http", "websocket"):
        request = {"kind": kind, "path": "/_nicegui_ws/socket.io", "query": ""}
        assert passes({"host": OWN, "cookie": COOKIE, "origin": f"http://{OWN}"}, **request)
        for cookie in ("", "fedaccord_8470=other", f"fedaccord_8471={TOKEN}", "é=;;=\x7f"):
            assert not passes({"host": OWN, "cookie": cookie}, **request)
    refused, _ = ask({"host": OWN}, kind="websocket", path="/_nicegui_ws/socket.io")
    assert refused == {"type": "websocket.close", "code": 1008}


FOREIGN = ("http://evil.example", "https://127.0.0.1:8470", "http://127.0.0.1:9000", "null", "")


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize("origin", FOREIGN)
def test_another_sites_origin_is_refused(kind, origin):
    headers = {"host": OWN, "cookie": COOKIE, "origin": origin}
    assert not passes(headers, kind=kind)
    assert not passes(headers, kind=kind, path="/_nicegui_ws/socket.io")


@pytest.mark.parametrize("host", ["evil.example:8470", "127.0.0.1", "127.0.0.1:80", "", "[::1"])
def test_another_host_is_refused(host):
    # A name of another site that leads to this machine must not be taken for this server.
    assert not passes({"host": host})


def test_this_machine_by_its_other_names():
    assert passes({"host": "localhost:8470"}) and passes({"host": "[::1]:8470"})
    for name in ("10.0.0.7", "localhost", socket.gethostname()):
        assert passes({"host": f"{name}:8470"}, listens="0.0.0.0")
    assert not passes({"host": "evil.example:8470"}, listens="0.0.0.0")


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_no_guess_passes(host, origin, query):
    headers = {"host": host.encode("latin-1", "replace").decode("latin-1")}
    headers["origin"] = origin.encode("latin-1", "replace").decode("latin-1")
    assert not passes(headers, query=query.encode("ascii", "replace").decode())


# The same of the server as a whole.


def get(app, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=30)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer


def test_the_server_refuses_as_its_guard_does(apps):
    app = apps()
    assert get(app, "/").status == 403
    assert get(app, "/?token=abcdefgh12345679").status == 403
    assert get(app, f"/?token={TOKEN}", Origin="http://evil.example").status == 403
    assert get(app, f"/?token={TOKEN}", Host=f"evil.example:{app.port}").status == 403
    found = get(app, f"/?token={TOKEN}")
    assert found.status == 200
    assert "default-src 'none'" in found.headers["content-security-policy"]
    kept = found.headers["set-cookie"]
    assert "HttpOnly" in kept and "SameSite=Strict" in kept
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "x3JJHMbDL1EzLkh9GBhXDw==",
        "Cookie": kept.partition(";")[0],
    }
    path = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    assert get(app, path, **upgrade, Origin="http://evil.example").status == 403
    assert get(app, path, **{**upgrade, "Cookie": ""}).status == 403


def test_the_server_listens_on_this_machine_alone(apps):
    address = next(
        (found[4][0] for found in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)),
        "127.0.0.1",
    )
    if address.startswith("127."):
        pytest.skip("this machine has no other address")
    with pytest.raises(OSError):
        socket.create_connection((address, apps().port), timeout=2).close()


# No request leaves this machine.


@pytest.mark.parametrize("pilots", [False, True])
def test_no_request_leaves(browser, apps, proxy, request, pilots):
    file = request.config.rootpath / "docs/how-to/network/pilots.csv"
    tab = Tab(browser, apps(file) if pilots else apps())
    before = len(proxy.asked)
    tab.open()
    tab.go("With payments")
    tab.see("Who pays whom")
    tab.go("Other stable plans")
    tab.see("This is the only stable plan")
    if pilots:
        tab.go("Price of certainty")
        tab.find("canvas, .chart svg")
    # The browser's own pages are no requests to anybody.
    own = (*(f"{kind}://127.0.0.1:{tab.app.port}/" for kind in ("http", "ws")), "chrome://")
    strange = [a for a in browser.strange_requests() if not a.startswith(own)]
    # The browser asks its maker for news by itself, whatever page it shows.
    asked = [line for line in proxy.asked[before:] if "google" not in line]
    assert strange == [] and asked == [] and browser.errors() == []


def test_a_planted_request_is_caught(browser, apps, proxy):
    tab = Tab(browser, apps()).open()
    reach = "await fetch('http://example.org/leak').catch(() => null)"
    plant = f"const done = arguments[0]; (async () => {{ {reach}; done(1) }})()"
    before = len(proxy.asked)
    tab.driver.execute_async_script(plant)
    # The page's policy stops it before it leaves the browser, and says so.
    assert proxy.asked[before:] == []
    assert any("example.org/leak" in said for said in browser.errors())
    # Without the policy it gets as far as the proxy, where the test above would see it.
    browser.cdp("Page.setBypassCSP", enabled=True)
    try:
        tab.open()
        tab.driver.execute_async_script(plant)
        assert any("example.org/leak" in asked for asked in proxy.asked[before:])
        assert "http://example.org/leak" in browser.strange_requests()
    finally:
        browser.cdp("Page.setBypassCSP", enabled=False)


def test_the_server_is_killed_and_started_again(browser):
    app = App()
    try:
        tab = Tab(browser, app).open("lock=0%3A500")
        shown = tab.numbers()
        app.kill()
        tab.until(lambda: "Connection lost" in tab.text(), "connection lost")
        app = tab.app = App(port=app.port)
        tab.until(lambda: "Connection lost" not in tab.text(), "connection back")
        tab.settle()
        tab.until(lambda: tab.numbers() == shown)
        tab.write(1, 777)
        assert tab.numbers()[1] == 777
    finally:
        app.close()


def test_the_missing_extra_is_named(tmp_path, monkeypatch, capsys):
    import sys

    from fedaccord.cli import main

    # Other tests may have brought the app along already.
    for name in [n for n in sys.modules if n.startswith(("fedaccord.explore", "nicegui."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "nicegui", None)
    monkeypatch.setattr(sys, "argv", ["fedaccord", "explore"])
    with pytest.raises(SystemExit) as end:
        main()
    said = capsys.readouterr().err
    assert end.value.code == 2 and "fedaccord[explore]" in said and "pip install" in said


def test_faults_of_the_command(tmp_path, monkeypatch, capsys):
    import sys

    from fedaccord.cli import main

    game = tmp_path / "game.json"
    game.write_text(json.dumps({"model": "linear", "requirements": [1], "benefits": [[1]]}))
    for arguments, said in (
        (["--token", "short"], "--token must have"),
        ([str(game), "--results", "x.sqlite"], "--results and --config are for audits"),
        ([str(tmp_path / "none.json")], "none.json"),
        (["--host", "203.0.113.1"], "cannot listen on 203.0.113.1"),
    ):
        monkeypatch.setattr(sys, "argv", ["fedaccord", "explore", "--no-browser", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 2 and said in capsys.readouterr().err
