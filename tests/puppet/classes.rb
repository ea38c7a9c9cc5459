# Prints what Puppet itself finds in files of code: path -> classes, as Puppet Server publishes them.
# Usage: ruby classes.rb DIRECTORY, which has environments/production; its own state goes below it too.
require 'json'
require 'puppet'
require 'puppet/info_service'

directory = ARGV.fetch(0)
environments = File.join(directory, 'environments')
Puppet.initialize_settings([
  '--confdir', File.join(directory, 'conf'), '--vardir', File.join(directory, 'var'),
  '--codedir', directory, '--environmentpath', environments
])
files = Dir.glob(File.join(environments, 'production', '**', 'manifests', '**', '*.pp')).sort
Puppet.override(Puppet.base_context(Puppet.settings)) do
  found = Puppet::InfoService.classes_per_environment('production' => files)['production']
  list = found.map do |path, file|
    file[:error] ? { path: path, error: file[:error].to_s } : { path: path, classes: file[:classes] }
  end
  puts JSON.generate(name: 'production', files: list)
end
