# Calls everything that the gem puppetclassify has; it says on stderr what a server does wrong.
# usage: ruby puppetclassify.rb CHECKOUT URL CA TOKEN
checkout, url, authority, token = ARGV
$LOAD_PATH.unshift("#{checkout}/lib")
require 'json'
require 'puppetclassify'

ROOT = '00000000-0000-4000-8000-000000000000'.freeze

def check(what, found, wanted)
  abort("#{what}: #{found.inspect}, not #{wanted.inspect}") unless wanted === found
end

client = PuppetClassify.new(url, 'ca_certificate_path' => authority, 'token' => token)
groups = client.groups
id = groups.create_group('name' => 'Made', 'parent' => ROOT, 'classes' => {})
own = 'cccccccc-0000-4000-8000-000000000001'
put = { 'name' => 'Put', 'id' => own, 'parent' => ROOT, 'classes' => {} }
check('put', groups.create_group(put), own)
check('id', groups.get_group_id('Made'), id)
groups.update_group('id' => id, 'classes' => { 'apache' => {} }, 'variables' => { 'a' => 1 })
groups.pin_nodes(id, %w[a b])
check('pinned', groups.get_group(id)['rule'], ['or', ['=', 'name', 'a'], ['=', 'name', 'b']])
unpinned = client.commands.unpin_from_all(['a'])
check('unpinned', unpinned['nodes'][0]['groups'][0]['id'], id)
groups.unpin_nodes(id, ['b'])
group = groups.get_group(id)
check('group', group.values_at('classes', 'variables'), [{ 'apache' => {} }, { 'a' => 1 }])
check('rule', group['rule'], nil)
check('groups', groups.get_groups.map { |it| it['name'] }.sort, ['All Nodes', 'Made', 'PE Master', 'Put'])
classified = client.classification.get('m', 'kernel' => 'Linux')
check('classified', classified['classes'], { 'puppet_enterprise' => {} })
check('explained', client.classification.explain('m', {})['final_classification'], Hash)
check('translated', client.rules.translate(['=', %w[fact kernel], 'Linux'])['query'], Array)
client.validate.validate_group('name' => 'New', 'parent' => ROOT, 'classes' => {})
check('environments', client.environments.get_environments[0]['sync_succeeded'], true)
check('environment', client.environments.get_environment('production')['name'], 'production')
client.environments.create_environment('another')
check('classes', client.classes.get_classes.size, 2)
check('classes of one', client.classes.get_environment_classes('production').size, 2)
check('class', client.classes.get_environment_class('production', 'apache')['name'], 'apache')
check('nodes', client.nodes.get_nodes.map { |it| it['name'] }, ['m'])
check('node', client.nodes.get_node('m')['name'], 'm')
check('update', client.last_class_update.get, Hash)
client.update_classes.update
client.import_hierarchy.import(groups.get_groups)
groups.delete_group(id)
check('left', groups.get_groups.size, 3)
