# A class without parameters from the classifier.
class role::web (String $banner = 'default') {
  include ntp
}
