'use strict';
const fs = require('fs'), { join } = require("path");
export * as all from './all';
export { one as two } from './one';
import def, * as names from 'names';
import './effect.css';

/**
 * Add a route.
 * @param {string} path
 */
app.route = function route(path) { return this.router.get(path); };
app.prototype.handle = async (req, res) => { res.end(); };
exports.VERSION = '1';
exports.parse = exports.decode = function (s) {};
module.exports = { start, stop: () => {}, async restart() {}, [computed]: 1, 'quoted-name': function () {} };
module.exports.Server = class Server { static #count = 0; get size() { return 1; } set size(v) {} };
const Wrapped = memo(function Inner() {});
let counter = 0, { a, b: { c }, ...rest } = options;
async function* stream() { for await (const chunk of source) { yield chunk; } }
export default class extends Base { run() {} }
label: for (const i in list) { const local = i; }
