using System;
namespace N {
    class Sound { int M() { return 1; } int P => 2; }
    class Broken { void A( { } void B() { } }
