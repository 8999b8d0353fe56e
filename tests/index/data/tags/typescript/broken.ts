import { A } from './a';
export class Sound<T> extends A {
  field: string = ;
  method(): void { this.call( }
  other(): number { return 1; }
}
interface Half { a: string; b(
export function last(): void {}
