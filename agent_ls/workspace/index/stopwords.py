"""Words of issues that say nothing of where to look, and keywords of programming languages."""

from __future__ import annotations

_STOP = """
a able about above according actual actually added adds after again all allow allowed allowing allows along
also although always am an and another any anything are around as at back be became because become been
before being below better between both bug bugs but by call called can cannot case cases cause caused causes
change changed changes check code come correct correctly could currently def default did do does doesn doing
don done during e each either else even ever every everything example examples expect expected expects false
few file first fix fixed fixes fixing follow following for found from further g gave get gets getting give
given gives go goes going good got had happen happens has have having he hello help hence here how however i
if import in incorrect incorrectly instead into is isn issue it its itself just keep know last least less
let like line lines look looks made make makes making many may me mean means might more most much must my
need needs never new no none nor not nothing now of off old on once one only onto or other our out output
over own part pass passed please possible previously print problem problems properly provide raise raised
raises rather really reason reproduce result results return returned returning returns right run running
runs said same see seem seems self set several shall should show shown shows similar simple since so some
something still such support supported sure take taken than that the their them then there therefore these
they thing things this those though through thus time times to too true try two under unless until up upon
us use used user users uses using usually value values version very via want was way we well were what when
where whether which while who whole why will with within without work worked working works would wrong x y
yes yet you your
"""
_KEYWORDS = """
and as assert async await break class const continue def del elif else except export extends False false
finally fn for from func function global http https if implements import in instanceof interface is lambda
let new nil None nonlocal not null or package pass print private protected public raise return self static
struct super switch the this throw True true try typeof undefined var void while with yield
"""

STOP = frozenset(_STOP.split())
KEYWORDS = frozenset(_KEYWORDS.split())
