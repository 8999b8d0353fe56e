ok() { echo 1; }
if [ x ; then
broken( {
}
last() { ok; }
