import a, { b as c, type D } from './x';
import * as ns from "y";
import type { T } from 'z';
import q = require('m');
export * from './w';
export { k } from './k';
const r = require('r');
function over(a: string): void;
function over(a: any) {}
export interface Shape<T> extends B { area(): number; w: number; readonly z?: T; (x: number): string; new (a: T): Shape<T> }
export abstract class A<T> extends B<T> implements Shape<T> { private x: number = 1; static y; abstract area(): number; get g() { return 1 } constructor(private p: number) { super() } h = () => 1; declare q: string; m?(): void }
export enum Color { Red, Green = 2, 'Blue' }
namespace N.M { export const f = (a: number): number => a; }
declare module "foo" { export function z(): void; }
declare global { interface Window { a: 1 } }
export default class { m() {} }
export default function () {}
declare function d(a: string): void;
declare const v: number;
type Id = { a: string; m(): void };
exports.x = function () {};
module.exports = { a, b: function () {}, c() {}, d: 1, 'e': () => {}, get f() { return 1} };
module.exports.y = class {};
A.prototype.z = function () {};
const {p1, p2: p3} = o, [q1] = z;
new Foo<Bar>(x.y.z(1));
@Dec() class K {}
let fn: (a: X) => Y = async <T>(a: T) => { const inner = () => 1; };
f?.(a); x!.y; a as B;
