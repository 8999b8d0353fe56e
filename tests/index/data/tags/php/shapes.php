<?php
namespace App\Models;
use Foo\Bar;
use Foo\{A, B as C};
use function Foo\fn1;
require_once 'x.php';
const TOP = 1;
define('DEF', 2);
$glob = 1;
/** Doc f. */
function f(int $a, ?Foo $b = null): int { function nested() {} return g($a)->h(Foo::bar(), new Baz(), self::K); }
abstract class C extends D implements E {
    use T;
    const K = 1, L = 2;
    public ?int $p = 1, $q;
    public function __construct(private int $prom) {}
    public static function m($x) { $this->p; $f = function($y) { return $y; }; }
    abstract protected function n(): void;
}
interface I extends J { const X = 1; public function q(); }
trait T { function t() {} }
enum Suit: string { case Hearts = 'h'; case Spades; function f() {} }
$o = new class { function anon() {} };
