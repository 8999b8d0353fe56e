"""The words with which test frameworks assert, by what they demand.

Names are folded: letters only, small (`assert_equal`, `assertEqual` and `Assert.Equal` are near each other).
A word maps to a relation of `checks.RANK` or to "true", "false", "fail"; "!" in front denies.
"""

from __future__ import annotations

import re


def _words(**relations: str) -> dict[str, str]:
    found = {}
    for relation, words in relations.items():
        for word in words.split():
            found[word] = relation.replace("_not", "!").replace("_", "-")
    return found


def fold(word: str) -> str:
    """`word` without generic arguments, underscores and capitals."""
    return re.sub(r"<.*|[_!?]", "", word).lower()


CALLS: dict[str, str] = _words(
    equal="assertequal assertequals assertis assertsame asserteq equal strictequal deepequal deepstrictequal"
    " areequal aresame same exactly assertarrayequals assertlistequal assertdictequal assertsetequal"
    " asserttupleequal assertsequenceequal assertmultilineequal assertiterableequals assertlinesmatch is"
    " equalvalues jsoneq yamleq equals eq assertequalf equalf asserteqm deepequals assertdeepequal"
    " assertjsonequal"
    " assertarrayequal assertframeequal strictequals assertstrictequal assertxmlequal asserthtmlequal"
    " assertqueryequal"
    " assertqueriesequal assertquerysetequal assertseriesequal assertindexequal assertdequal strictequal",
    _notequal="assertnotequal assertnotequals notequal notstrictequal notdeepequal notdeepstrictequal"
    " arenotequal"
    " arenotsame assertne assertisnot assertnotsame refuteequal notsame refutesame notequals",
    true="asserttrue true istrue assert ok that isok assertthat",
    false="assertfalse false isfalse refute notok isnotok isnottrue",
    null="assertisnone assertnull null isnull nil isnil assertnil isundefined",
    defined="assertisnotnone assertnotnull notnull isnotnull notnil refutenil isnotnil isdefined exists",
    contains="assertin assertincludes assertinclude contains contain include includes assertcontains subset"
    " stringcontains issubsetof issupersetof",
    _notcontains="assertnotin refuteincludes notcontains doesnotcontain notinclude notincludes"
    " assertnotcontains",
    type="assertisinstance assertinstanceof istype isinstanceof isassignablefrom assertkindof instanceof"
    " implements typeof",
    _nottype="assertnotisinstance isnottype isnotinstanceof",
    lt="assertless less isless isbelow",
    le="assertlessequal lessorequal islessorequal isatmost",
    gt="assertgreater greater isgreater isabove",
    ge="assertgreaterequal greaterorequal isgreaterorequal isatleast",
    approx="assertalmostequal assertalmostequals indelta inepsilon assertindelta assertinepsilon closeto"
    " assertallclose assertarrayalmostequal approximately assertalmosteq assertrelativeeq assertabsdiffeq",
    raises="assertraises assertraisesregex assertraisesregexp assertraisesmessage assertthrows throws"
    " throwsasync"
    " throwsany throwsanyasync throwsexactly throwsexactlyasync assertthrowsexactly rejects assertraise"
    " panics"
    " panicswitherror panicswithvalue raises throwsexception throwsexceptionasync deepequalerror",
    errs="error errorf errorcontains equalerror errorcontainsf",
    erris="erroris erroras",
    runs="noerror doesnotthrow assertdoesnotthrow doesnotreject notpanics assertnothingraised noerrorf"
    " doesnotthrowasync",
    regex="assertregex assertregexpmatches assertmatch match matches regexp matchregex",
    _notregex="assertnotregex doesnotmatch refutematch notregexp assertnomatch",
    any_order="assertcountequal elementsmatch samemembers areequivalent assertunorderedequal samedeepmembers"
    " assertitemsequal equivalent setequals",
    empty="assertempty empty isempty",
    _notempty="refuteempty notempty isnotempty assertnotempty",
    length="len assertlen lengthof count haslength single",
    zero="zero iszero",
    holds="assertoperator refuteoperator assertpredicate refutepredicate assertrespondto"
    " assertsilent assertoutput assertchanges assertdifference asserttemplate",
    fail="fail failnow flunk assertfail failf unreachable",
)
"""Functions and methods of assertion objects: `self.assertEqual(a, b)`, `require.Equal(t, a, b)`."""

MATCHERS: dict[str, str] = _words(
    equal="issameinstanceas"
    " tobe toequal tostrictequal equal equals eql eq isequalto issameas containsexactly equalto"
    " deepequal"
    " toequalvalue haveattributes beequalto sameas hastostring hasvalue"
    " haveattributes identicalto satisfiesexactly tobedeepequal hasmessage hasfieldorpropertywithvalue"
    " havemessage onlycontain be containonly",
    _notequal="isnotequalto isnotsameinstanceas isnotsameas notbe notequal",
    true="tobetruthy true ok betrue istrue tobetrue truthy betruthy trueexactly",
    false="tobefalsy false befalse isfalse tobefalse falsy befalsey befalsy",
    null="tobenull tobeundefined null undefined benil isnull benull tobenone nil",
    defined="tobedefined exist isnotnull notbenull notnull ispresent isnotblank",
    contains="tocontain tocontainequal contains contain include includes contain startwith startswith endwith"
    " endswith containsonce containskey containskeys containsentry tohaveproperty property"
    " containsstring hasitem"
    " hasitems havekey containsequivalentof containsubsequence containssubsequence containssequence"
    " haveproperty"
    " beelementof beoneof isin keys havekeys havefield hasproperty tohavekey",
    _notcontains="doesnotcontain notcontain doesnotcontainkey notincludes",
    partial="tomatchobject matchobject partial containsallentriesof tomatcharray nested"
    " isequaltoignoringcase isequaltoignoringwhitespace isequaltonormalizingwhitespace"
    " containsanyof issubsetof",
    type="tobeinstanceof isinstanceof instanceof bea bean beinstanceof bekindof isexactlyinstanceof"
    " isinstance beoftype a an"
    " tobetypeof beassignableto instanceofany isassignablefrom beaninstanceof beakindof respondto",
    lt="tobelessthan below lessthan islessthan belessthan lt isbefore bebefore",
    le="tobelessthanorequal most lessthanorequalto islessthanorequalto belessthanorequalto atmost lte"
    " isnotafter"
    " beatmost hassizelessthanorequalto hassizelessthan",
    gt="tobegreaterthan above greaterthan isgreaterthan begreaterthan gt isafter ispositive bepositive"
    " positive",
    ge="tobegreaterthanorequal least greaterthanorequalto isgreaterthanorequalto begreaterthanorequalto"
    " atleast gte"
    " isnotbefore hassizegreaterthanorequalto hassizegreaterthan isnotnegative beatleast",
    approx="tobecloseto closeto approximately iscloseto bewithin beapproximately within usingtolerance"
    " iswithin",
    raises="tothrow tothrowerror throw raiseerror throws throwexactly throwasync tothrowerrormatchingsnapshot"
    " isinstanceofthrown throwexception raiseexception rejectedwith rejected",
    regex="tomatch match matches matchregex matchespattern",
    _notregex="doesnotmatch notmatch",
    any_order="containsexactlyinanyorder containexactly matcharray members beequivalentto containsinanyorder"
    " samemembers havesamemembers containsexactlyinanyorderelementsof hassameelementsas containsonly"
    " arrayofsize equivalentto onlycontains",
    empty="tobeempty empty isempty beempty",
    _notempty="isnotempty notbeempty present",
    length="tohavelength lengthof havelength haslength havesize length hasonlyoneelement containsingle"
    " hassize hascount havecount",
    snapshot="tomatchsnapshot tomatchinlinesnapshot matchsnapshot tomatchimagesnapshot",
    called="tohavebeencalled tobecalled called havereceived callcount",
    called_n="tohavebeencalledtimes tobecalledtimes tohavebeencalledonce calledonce calledtwice exactly",
    called_with="tohavebeencalledwith tobecalledwith tohavebeenlastcalledwith tohavebeennthcalledwith"
    " calledwith"
    " calledoncewith lastcalledwith nthcalledwith with calledwithexactly tohavebeencalledexactlyoncewith",
    holds="satisfies tosatisfy satisfy matcher allmatch anymatch toresolve allsatisfy anysatisfy",
    changes="change",
)
"""What follows `expect(x)`, `assertThat(x)`, `x.Should()`, `Assert.That(x, …)`."""

MOCKS: dict[str, str] = _words(
    called="assertcalled assertawaited assertcalledonceo",
    called_n="assertcalledonce assertawaitedonce",
    called_with="assertcalledwith assertcalledoncewith assertanycall asserthascalls assertawaitedwith"
    " assertawaitedoncewith",
    not_called="assertnotcalled assertnotawaited",
)

LINKS = {
    "to", "be", "been", "is", "that", "which", "and", "has", "have", "with", "at", "of", "same", "but",
    "does",
    "still", "also", "deep", "strict", "nested", "own", "ordered", "it", "the", "an", "a", "should",
    "eventually",
    "resolves", "not", "nottoo", "tonot", "notto", "rejects", "as", "because", "returns", "describedas",
    "usingrecursivecomparison", "ignoringcase", "any", "all", "using", "includingall",
}  # fmt: skip
"""Parts of a chain that demand nothing by themselves."""

ROOTS = {"expect", "assertthat", "should", "expecttypeof", "assume", "verify", "assertthatthrownby",
         "assertthatexceptionoftype", "assertthatcode", "isexpected", "assertsoftly", "then", "expectsoft",
         "catchthrowable", "assertthatillegalargumentexception",
         "assertthatnullpointerexception"}  # fmt: skip

TIGHT = {"toBe", "toStrictEqual"}

WILD = re.compile(
    r"^(?:mock\.|unittest\.mock\.)?ANY$|^expect\.(?:any|anything|stringMatching|stringContaining|objectContaining"
    r"|arrayContaining|closeTo)\(|^(?:Mockito\.)?any\w*\(\)$|^mock\.(?:Anything|AnythingOfType|MatchedBy)\b|^anything(?:\(\))?$|^It\.IsAny"
    r"|^(?:an?_\w+|kind_of|hash_including|array_including|instance_of|be_\w+|include|match|start_with|end_with)\("
    r"|^Arg(?:Matchers)?\.(?:any|Any|Is)\b|^(?:It\.)?(?:IsIn|IsNotNull|Is)\b.*\(|^(?:eq|same)_never|^_$|^\.\.$"
    r"|^any_args$|^(?:any|isA|notNull|isNotNull)\(|^sinon\.match|^is-\w+_never|^Arg\.Any"
)
"""Expected values that accept more than one value."""

BROAD = {"", "exception", "baseexception", "throwable", "error", "standarderror", "runtimeerror*", "object",
         "system.exception", "exception.class()", "throwable.class()", "exception.class",
         "throwable.class"}  # fmt: skip

FAILURES = re.compile(
    r"^(?:pytest|unittest|self|this|assert|Assert|Assertions|require|chai|expect|t|b|tb|s)\.(?:fail|Fail|FailNow|Fatal|Fatalf"
    r"|Error|Errorf|Failf|flunk)$|^(?:fail|flunk|panic|panic!|unreachable!|done\.fail|AssertionError)$"
    r"|^(?:self|s)\.(?:T\(\)\.)?(?:Fatal|Fatalf|Error|Errorf)$"
)
"""Calls that make a test fail by being reached."""

FAILURE_TYPES = re.compile(
    r"\b(?:AssertionError|AssertionFailedError|Error|Failed|AssertFailedException|XunitException)\b"
)
SWALLOWING = re.compile(
    r"^(?:[\w.:]+[.:])?(?:AssertionError|Exception|BaseException|Throwable|Error|StandardError|object"
    r"|RSpec::Expectations::ExpectationNotMetError|Minitest::Assertion|AssertionFailedError|XunitException|AssertionException|Assertion|ExpectationNotMetError)$"
)
"""Handlers for these also catch what a failed assertion throws."""
