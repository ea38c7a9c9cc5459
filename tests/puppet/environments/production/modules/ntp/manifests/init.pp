# A class whose parameters have one type each.
class ntp (
  Array[String] $servers = ['default.example'],
  Boolean $panic = true,
  Integer $maxpoll = 6,
  Float $drift = 1.0,
  String $mode = 'default',
  Optional[Hash] $options = undef,
  Optional[String] $absent = 'default',
) {
}
