"""Which files an import means, per language, and who imports a file."""

from __future__ import annotations

import pytest
from memory_view import MemoryView

from agent_ls.errors import ToolRefused
from agent_ls.workspace.index.importers import Modules, importers
from agent_ls.workspace.index.records import Import

PATHS = """
setup.py pkg/__init__.py pkg/models.py pkg/copy.py pkg/sub/__init__.py pkg/sub/tool.py pkg/sub/types.pyi
src/lib2/__init__.py src/lib2/core.py scripts/run.py scripts/helper.py web/index.ts web/util.ts
web/util.test.ts web/parts/index.tsx web/old.js web/data.json src/app/store.ts include/proj/shape.h
src/shape.cc src/shape.h src/detail.h cmd/main.go internal/store/store.go internal/store/disk.go
internal/store/store_test.go rust/src/lib.rs rust/src/net.rs rust/src/net/tcp.rs rust/src/fs/mod.rs
java/com/acme/Shape.java java/com/acme/Circle.java java/com/acme/util/Text.java lib/acme/shape.rb
lib/acme.rb app/Models/User.php bin/common.sh bin/run.sh
""".split()  # noqa: SIM905
MODULES = Modules(PATHS)

CASES = [
    ("python", "setup.py", "pkg", (), ["pkg/__init__.py"]),
    ("python", "setup.py", "pkg.models", (), ["pkg/models.py"]),
    ("python", "setup.py", "pkg", ("models", "thing"), ["pkg/__init__.py", "pkg/models.py"]),
    ("python", "setup.py", "pkg", ("models",), ["pkg/models.py"]),
    ("python", "setup.py", "pkg.sub", ("*",), ["pkg/sub/__init__.py"]),
    ("python", "setup.py", "pkg.sub.types", (), ["pkg/sub/types.pyi"]),
    ("python", "setup.py", "copy", (), []),
    ("python", "setup.py", "lib2.core", ("f",), ["src/lib2/core.py"]),
    ("python", "scripts/run.py", "helper", (), ["scripts/helper.py"]),
    ("python", "setup.py", "helper", (), []),
    ("python", "pkg/models.py", ".", ("copy", "sub"), ["pkg/copy.py", "pkg/sub/__init__.py"]),
    ("python", "pkg/sub/tool.py", "..models", ("A",), ["pkg/models.py"]),
    ("python", "pkg/sub/tool.py", "..", ("x",), ["pkg/__init__.py"]),
    ("python", "pkg/__init__.py", ".sub.tool", (), ["pkg/sub/tool.py"]),
    ("typescript", "web/index.ts", "./util", (), ["web/util.ts"]),
    ("typescript", "web/index.ts", "./util.js", (), ["web/util.ts"]),
    ("typescript", "web/index.ts", "./parts", (), ["web/parts/index.tsx"]),
    ("tsx", "web/parts/index.tsx", "..", (), ["web/index.ts"]),
    ("tsx", "web/parts/index.tsx", "../data.json", (), ["web/data.json"]),
    ("javascript", "web/old.js", "@/app/store", (), ["src/app/store.ts"]),
    ("javascript", "web/old.js", "react", (), []),
    ("javascript", "web/old.js", "@scope/pkg", (), []),
    ("cpp", "src/shape.cc", "shape.h", (), ["src/shape.h"]),
    ("cpp", "src/shape.cc", "proj/shape.h", (), ["include/proj/shape.h"]),
    ("c", "src/shape.cc", "stdio.h", (), []),
    (
        "go",
        "cmd/main.go",
        "example.com/x/internal/store",
        (),
        ["internal/store/disk.go", "internal/store/store.go"],
    ),
    ("go", "cmd/main.go", "fmt", (), []),
    ("rust", "rust/src/lib.rs", "self::net", (), ["rust/src/net.rs"]),
    ("rust", "rust/src/lib.rs", "net", (), ["rust/src/net.rs"]),
    ("rust", "rust/src/net/tcp.rs", "crate::fs", ("open",), ["rust/src/fs/mod.rs"]),
    ("rust", "rust/src/net/tcp.rs", "super", ("Conn",), []),
    ("rust", "rust/src/net.rs", "self", ("tcp",), ["rust/src/net/tcp.rs"]),
    ("java", "java/com/acme/Circle.java", "com.acme", ("Shape",), ["java/com/acme/Shape.java"]),
    ("java", "java/com/acme/Circle.java", "com.acme.util", ("*",), ["java/com/acme/util/Text.java"]),
    ("java", "java/com/acme/Circle.java", "com.acme.Shape", ("make",), ["java/com/acme/Shape.java"]),
    ("java", "java/com/acme/Circle.java", "java.util", ("List",), []),
    ("ruby", "lib/acme.rb", "acme/shape", (), ["lib/acme/shape.rb"]),
    ("php", "bin/x.php", "App\\Models", ("User",), ["app/Models/User.php"]),
    ("bash", "bin/run.sh", "./common.sh", (), ["bin/common.sh"]),
    ("bash", "bin/run.sh", "$DIR/common.sh", (), ["bin/common.sh"]),
    ("c_sharp", "a.cs", "System", (), []),
    (None, "README.md", "pkg", (), []),
]


@pytest.mark.parametrize(("language", "importer", "module", "names", "found"), CASES)
def test_which_files_an_import_means(
    language: str | None, importer: str, module: str, names: tuple[str, ...], found: list[str]
) -> None:
    assert MODULES.resolve(importer, language, Import(module, 1, names)) == found


FILES = {
    "pkg/__init__.py": b"from . import models\n",
    "pkg/models.py": b"import os\n",
    "pkg/use.py": b"import json\nfrom . import models, other\n",
    "pkg/other.py": b"# models are elsewhere\nfrom pkg import X\n",
    "app.py": b"from pkg.models import A\nimport pkg\nimport json.decoder\n",
    "web/index.js": b"import { a } from './my-part';\n",
    "web/my-part.js": b"export const a = require('.');\n",
}


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("pkg/models.py", [("app.py", 1), ("pkg/__init__.py", 1), ("pkg/use.py", 2)]),
        ("./pkg/models.py", [("app.py", 1), ("pkg/__init__.py", 1), ("pkg/use.py", 2)]),
        ("pkg.models", [("app.py", 1), ("pkg/__init__.py", 1), ("pkg/use.py", 2)]),
        ("pkg/__init__.py", [("app.py", 2), ("pkg/other.py", 2)]),
        ("json", [("app.py", 3), ("pkg/use.py", 1)]),
        ("os", [("pkg/models.py", 1)]),
        ("web/my-part.js", [("web/index.js", 1)]),
        ("web/index.js", [("web/my-part.js", 1)]),
        ("app.py", []),
    ],
)
def test_who_imports(target: str, found: list[tuple[str, int]]) -> None:
    assert [(it.path, it.statement.line) for it in importers(MemoryView(FILES), target)] == found


def test_nobody_knows_the_module() -> None:
    with pytest.raises(ToolRefused, match="no file"):
        importers(MemoryView(FILES), "nothing.like_it")
