use std::collections::{HashMap, self as sc, io::{Read, Write as W}};
use crate::a::b;
use x::*;
extern crate foo as bar;
mod other;
pub mod m { pub fn a() {} }
/// A point.
#[derive(Debug)]
pub struct P<T> { pub x: T, y: i32 }
struct U(i32);
impl<T: Clone> P<T> {
    const C: u8 = 1;
    pub fn new(x: T) -> Self { P { x } }
}
impl fmt::Display for P<i32> {
    type Out = i32;
    fn fmt(&self, f: &mut F) -> R { let a = self.x.foo::<i32>(); Self::new(a); println!("{}", a); m::a(); Ok(()) }
}
impl a::b::Q for c::D {}
impl Tr for &str {}
trait Area: Sup { type A; const K: i32; fn area(&self) -> f64; fn twice(&self) -> f64 { 2.0 } }
enum E { A, B(i32), C { z: u8 } }
union Un { a: i32 }
const N: usize = 3;
static mut ST: i32 = 1;
type T2 = Vec<P<i32>>;
macro_rules! mac { () => {} }
#[test]
fn works() { fn inner() {} struct L; let f = |q| q + 1; match x { E::A => 1, Some(n) => n } }
extern "C" { fn ext(a: i32); static V: i32; }
