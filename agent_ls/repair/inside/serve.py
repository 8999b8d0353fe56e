"""The two modes of the server, and what a child does with a command."""

# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: PTH118, PTH123

import json
import os
import signal
import sys
import threading
import time
import traceback

from .drivers import driver_for
from .exchange import LiveCode, full_sources, override_sources
from .recording import Recorder, live_stack, stack_of
from .server import Channel, Server, arm


def run_tests(driver, command, emit, root):
    """Run the command's tests in order; stop early as the command says."""
    asked = set(command.get("asked", ()))
    tests = [test for test in command["tests"] if driver.has(test)]
    missing = [test for test in command["tests"] if not driver.has(test)]
    if missing:
        emit({"missing": missing})
        if any(test in asked for test in missing):
            return
    limits = command["cpu"]
    default = command["cpu_default"]
    record = command.get("record")
    spent = 0.0
    failed = False
    for index, test in enumerate(tests):
        if failed and (test not in asked or spent > command.get("go_on", 0.01)):
            break
        following = tests[index + 1] if index + 1 < len(tests) else None
        limit = limits.get(test, default)
        recorder = Recorder(root) if record else None
        emit({"start": test})
        if recorder is not None:
            finish_on_alarm(recorder, test, emit, root)
        arm(limit)
        before = time.process_time()
        wall = time.monotonic()
        if recorder is not None:
            recorder.start()
        try:
            outcome, error = driver.run_one(test, following)
        finally:
            if recorder is not None:
                recorder.stop()
        arm(0)
        used = time.process_time() - before
        spent += used
        event = {"test": test, "outcome": outcome, "cpu": used, "wall": time.monotonic() - wall}
        if error is not None:
            event["error"] = [error[0], error[1]]
            if record:
                event["stack"] = stack_of(error[2], root)
        if recorder is not None:
            event.update(recorder.result())
        emit(event)
        if outcome not in ("passed", "skipped", "xfailed"):
            failed = True
            if record and command.get("once"):
                break


def finish_on_alarm(recorder, test, emit, root):
    """A recorded test that runs too long still gives its lines and where it was."""

    def handler(number, frame):
        recorder.stop()
        event = {"test": test, "outcome": "timeout", "stack": live_stack(frame, root)}
        event["error"] = ["Timeout", "the test did not end"]
        event.update(recorder.result())
        emit(event)
        emit({"done": 1})
        os._exit(0)

    signal.signal(signal.SIGPROF, handler)


def serve_fast(config, channel):
    root = config["root"]
    executed = {}
    bases = {"dir": config["scratch"]}

    def watch(frame, event, arg):
        if event == "call":
            executed[id(frame.f_code)] = frame.f_code

    def takeover(driver):
        sys.setprofile(None)
        threading.setprofile(None)
        live = LiveCode(root, executed)
        third_party = []
        prefix = os.path.realpath(root) + os.sep
        for name, module in list(sys.modules.items()):
            path = getattr(module, "__file__", None)
            if isinstance(path, str):
                real = os.path.realpath(path)
                if "site-packages" in real or not real.startswith(prefix):
                    third_party.append(name)
        channel.send(
            {
                "ready": driver.ids(),
                "errors": driver.collect_errors[:20],
                "modules": third_party,
                "python": sys.version.split()[0],
            }
        )

        def job(command, emit):
            driver.prepare_child(os.environ["TMPDIR"])
            missing = {}
            for path, pieces in command.get("pieces", {}).items():
                real = os.path.realpath(os.path.join(root, path))
                if real not in live.loaded:
                    missing[path] = command["edits"][path]
                    continue
                if not pieces or not all(live.exchange(real, piece) for piece in pieces):
                    emit({"slow": path})
                    return
            if missing:
                override_sources(full_sources(dict(command, edits=missing), root, bases))
            run_tests(driver, command, emit, root)

        Server(config, channel, job).loop()

    threading.setprofile(watch)
    sys.setprofile(watch)
    driver = driver_for(config)
    status = driver.run(config["ids"], takeover)
    sys.setprofile(None)
    channel.send({"ended": int(status), "errors": driver.collect_errors[:20]})


def serve_slow(config, channel):
    root = config["root"]
    prefix = os.path.realpath(root) + os.sep
    bases = {"dir": config["scratch"]}
    if config["kind"] != "unittest":
        import pytest  # noqa: F401  (kept warm)
    before = set(sys.modules)
    for name in config.get("modules", []):
        if name in sys.modules or name.startswith(("_pytest", "pytest", "conftest", "__main")):
            continue
        try:
            __import__(name)
        except BaseException:
            pass
    for name in set(sys.modules) - before:
        path = getattr(sys.modules[name], "__file__", None)
        if isinstance(path, str):
            real = os.path.realpath(path)
            if real.startswith(prefix) and "site-packages" not in real:
                del sys.modules[name]
    channel.send({"ready": [], "errors": [], "modules": [], "python": sys.version.split()[0]})

    def job(command, emit):
        override_sources(full_sources(command, root, bases))
        sys.dont_write_bytecode = True
        driver = driver_for(config)

        def takeover(driver):
            driver.prepare_child(os.environ["TMPDIR"])
            if driver.collect_errors:
                emit({"errors": driver.collect_errors[:5]})
            if command.get("all"):
                command["tests"] = command["tests"] or driver.ids()
            arm(0)
            run_tests(driver, command, emit, root)

        arm(command.get("cpu_import", 20.0))
        status = driver.run(command.get("collect") or command["tests"], takeover)
        emit({"ended": int(status)})

    Server(config, channel, job).loop()


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        config = json.load(file)
    os.chdir(config["cwd"])
    # What `python -m pytest` has: the directory it was started in, not the script's own.
    sys.path[0] = config["cwd"]
    sys.dont_write_bytecode = True
    channel = Channel(config["commands"], config["replies"])
    try:
        (serve_fast if config["mode"] == "fast" else serve_slow)(config, channel)
    except BaseException:
        channel.send({"fatal": traceback.format_exc()[-3000:]})
    finally:
        os._exit(0)
