#!/bin/bash
source ./lib.sh
. other.sh
# Say f.
f() {
  local a=1 b
  echo "$1" | grep -v x; g "$X"
}
function g {
  :
}
VAR=1
export EXP=2
readonly RO=3
declare -r DC=4
alias ll='ls -l'
arr=(1 2)
