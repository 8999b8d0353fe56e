<html><?php if ($x): ?><b><?php endif; ?>
<?php
class Sound { function ok() { return $this->call(; } function also() {} }
function last( { }
