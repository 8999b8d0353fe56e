export default function main() {}
const add = (a, b) => a + b, two = 2;
var old = function () { var inside = 1; };
class A extends B {
  #x = 1;
  constructor() { super(); }
  static async m(a) { function h() {} }
  arrow = () => 1;
}
const api = { get: function () {}, put() {}, plain: 3 };
exports.run = () => {};
A.prototype.n = function (z) {};
function* gen() {}
const App = ({ name }) => <div>{name}<Foo/></div>;
const {x} = require('./u'); import('z');
(function() { function iife() { this.q = function() {} } })();
