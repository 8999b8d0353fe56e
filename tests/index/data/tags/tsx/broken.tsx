export const A = () => <div><B></div>;
export function C() { return <p>text</p>; }
