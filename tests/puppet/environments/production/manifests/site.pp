# What the classifier sent, in resources that a test can look at and that change nothing.
node default {
  role::seen { 'variables':
    value => {
      'tier'   => getvar('tier'),
      'count'  => getvar('count'),
      'ratio'  => getvar('ratio'),
      'flag'   => getvar('flag'),
      'list'   => getvar('list'),
      'map'    => getvar('map'),
      'date'   => getvar('date'),
      'none'   => getvar('none'),
      'long'   => getvar('long'),
      'hash'   => getvar('hash'),
      'who'    => getvar('who'),
    },
  }
  role::seen { 'environment': value => $environment }
  role::seen { 'pp_role': value => $trusted.dig('extensions', 'pp_role') }
  role::seen { 'hiera': value => lookup('role::web::banner', Data, 'first', 'none') }
}
