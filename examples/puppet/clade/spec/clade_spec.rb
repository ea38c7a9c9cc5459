# frozen_string_literal: true

require_relative 'spec_helper'

GOOD = {
  'name' => 'web1', 'groups' => [], 'environment' => 'staging',
  'classes' => { 'ntp' => { 'panic' => false, 'servers' => ['a'] } },
  'parameters' => { 'tier' => 'front', 'none' => nil },
  'config_data' => { 'ntp' => { 'fudge' => { 'x' => [1] } } }
}.freeze
CONFLICT = {
  'kind' => 'classification-conflict', 'msg' => 'The node was classified into groups named "a" and "b"', 'details' => {}
}.freeze

RSpec.describe Puppet::Node::Clade do
  def stub(*answers)
    answers = answers.map { |status, body| [status, body.is_a?(Hash) ? JSON.generate(body) : body] }
    Stub.new(*answers).tap { |it| @stubs << it }
  end

  def configure(entries)
    File.write("#{@home}/conf/classifier.yaml", entries.to_yaml)
  end

  def closed_port
    socket = TCPServer.new('127.0.0.1', 0)
    port = socket.addr[1]
    socket.close
    { 'server' => '127.0.0.1', 'port' => port, 'scheme' => 'http' }
  end

  def find(name = 'web1', facts: {}, uuid: nil, environment: 'production', trusted: nil)
    environment = Puppet::Node::Environment.create(environment.to_sym, [])
    options = { facts: Puppet::Node::Facts.new(name, facts), environment: environment }
    options[:transaction_uuid] = uuid if uuid
    request = Puppet::Indirector::Request.new(:node, :find, name, nil, options)
    staging = Puppet::Node::Environment.create(:staging, [])
    loader = Puppet::Environments::Static.new(environment, staging)
    Puppet.override(environments: loader, trusted_information: trusted) do
      described_class.new.find(request)
    end
  end

  it 'makes a node of the answer' do
    server = stub([200, GOOD])
    configure(server.entry)
    node = find(facts: { 'kernel' => 'Linux' })
    expect(node.classes).to eq(GOOD['classes'])
    expect(node.parameters).to include('tier' => 'front', 'none' => nil, 'kernel' => 'Linux')
    expect(node.environment.name).to eq(:staging)
    expect(node.clade_config_data).to eq(GOOD['config_data'])
  end

  it 'posts facts, trusted data and the transaction, and never a fact called trusted' do
    server = stub([200, GOOD])
    configure(server.entry)
    trusted = Puppet::Context::TrustedInformation.new('remote', 'web1', { 'pp_role' => 'web' })
    find(facts: { 'os' => { 'family' => 'Debian' }, 'trusted' => { 'certname' => 'forged' } }, uuid: 'u-1', trusted: trusted)
    expect(server.requests.first['line']).to eq('POST /classifier-api/v1/classified/nodes/web1 HTTP/1.1')
    body = server.requests.first['body']
    expect(body['fact']).to eq('os' => { 'family' => 'Debian' })
    expect(body['trusted']).to include('certname' => 'web1', 'extensions' => { 'pp_role' => 'web' })
    expect(body['transaction_uuid']).to eq('u-1')
  end

  describe 'clade::data' do
    def data(node)
      function = Class.new do
        # The function without its registration in a loader.
        source = File.read(File.expand_path('../lib/puppet/functions/clade/data.rb', __dir__))
        class_eval(source[/^  def data.*(?=^end)/m])
      end
      function.new.of(node)
    end

    def node(facts, trusted)
      Puppet::Node.new('web1', facts: Puppet::Node::Facts.new('web1', facts)).tap { |it| it.trusted_data = trusted }
    end

    it 'hands the facts and trusted data of the catalog along' do
      server = stub([200, { 'ntp::fudge' => 1 }])
      configure(server.entry)
      found = data(node({ 'kernel' => 'Linux', 'trusted' => { 'certname' => 'forged' } }, { 'certname' => 'web1' }))
      expect(found).to eq('ntp::fudge' => 1)
      expect(server.requests.first['line']).to eq('POST /hiera/web1 HTTP/1.1')
      expect(server.requests.first['body']).to eq('fact' => { 'kernel' => 'Linux' }, 'trusted' => { 'certname' => 'web1' })
    end

    it 'fails the catalog without an answer' do
      [[404, { 'kind' => 'not-found', 'msg' => 'not known' }], [503, { 'kind' => 'storage-failed', 'msg' => 'disk' }]].each do |answer|
        configure(stub(answer).entry)
        File.utime(Time.now, Time.now + @stubs.size, "#{@home}/conf/classifier.yaml")
        expect { data(node({}, {})) }.to raise_error(Puppet::Error, /could not classify web1/)
      end
    end
  end

  it 'takes nothing that another certificate proves' do
    server = stub([200, GOOD])
    configure(server.entry)
    find(trusted: Puppet::Context::TrustedInformation.new('remote', 'admin', { 'pp_role' => 'web' }))
    expect(server.requests.first['body']['trusted']).to eq('certname' => 'web1')
  end

  it 'reads settings that changed' do
    first = stub([200, GOOD])
    configure(first.entry)
    find
    second = stub([200, GOOD.merge('classes' => {})])
    configure(second.entry)
    File.utime(Time.now, Time.now + 60, "#{@home}/conf/classifier.yaml")
    expect(find.classes).to be_empty
    expect(first.requests.size).to eq(1)
  end

  it 'leaves the environment to the agent when the group does' do
    [GOOD.merge('environment' => 'agent-specified'), GOOD.reject { |key, _| key == 'environment' }].each do |answer|
      configure(stub([200, answer]).entry)
      File.utime(Time.now, Time.now + @stubs.size, "#{@home}/conf/classifier.yaml")
      expect(find(environment: 'production').environment.name).to eq(:production)
    end
  end

  {
    'a server that refuses connections' => :closed_port,
    'a host that does not exist' => { 'server' => 'clade.invalid', 'scheme' => 'http' },
    'an error of the server' => [500, '{"kind":"application-error","msg":"x"}'],
    'a server without a snapshot' => [503, '{"kind":"no-snapshot","msg":"x"}'],
    'a page that is not JSON' => [200, '<html>'],
    'JSON that is not an answer' => [200, '{}'],
    'a refusal to answer us' => [401, '{"kind":"user-unauthenticated","msg":"x"}'],
    'a server that hangs' => [:hang]
  }.each do |what, failure|
    it "asks another server after #{what}" do
      first = case failure
              when :closed_port then closed_port
              when Hash then failure
              else stub(failure).entry
              end
      second = stub([200, GOOD])
      configure([first.merge('timeout' => 1), second.entry])
      expect(find.classes).to eq(GOOD['classes'])
      expect(find.classes).to eq(GOOD['classes'])
      # The one that failed was asked once.
      expect(@stubs.first.requests.size).to eq(1) if failure.is_a?(Array)
      expect(second.requests.size).to eq(2)
    end
  end

  it 'uses the last good answer when no server answers, and logs it' do
    server = stub([200, GOOD], [503, CONFLICT.merge('kind' => 'no-snapshot')])
    configure(server.entry)
    find
    expect(find.parameters).to include('tier' => 'front')
    expect(@warnings.last).to match(/answers 503: The node .* the last good answer stands in, \d s old/)
    expect { find('web2') }.to raise_error(Puppet::Error, /Clade could not classify web2: .* there is no last good answer/)
    file = "#{@home}/var/clade/terminus/nodes/web1.json"
    expect(File.stat(file).mode & 0o777).to eq(0o600)
    kept = JSON.parse(File.read(file))
    File.write(file, JSON.generate(kept.merge('answered_at' => '2020-01-01T00:00:00Z')))
    expect { find }.to raise_error(Puppet::Error, /no last good answer/)
    later = (Time.now + 3600).utc.iso8601
    File.write(file, JSON.generate(kept.merge('answered_at' => later)))
    expect { find }.to raise_error(Puppet::Error, /no last good answer/)
    expect(@warnings.last).to match(/is of a time to come, so its age is not known/)
    File.write(file, '{"answered')
    expect { find }.to raise_error(Puppet::Error, /no last good answer/)
  end

  it 'keeps nothing when nothing may be old' do
    server = stub([200, GOOD], [503, '{}'])
    configure(server.entry.merge('max_stale' => 0))
    find
    expect { find }.to raise_error(Puppet::Error, /no last good answer/)
  end

  it 'never hides a conflict' do
    server = stub([200, GOOD], [500, CONFLICT])
    other = stub([200, GOOD])
    configure([server.entry, other.entry])
    find
    expect { find }.to raise_error(Puppet::Error, /could not classify web1: The node was classified into groups named "a" and "b"/)
    expect(other.requests).to be_empty
  end

  describe 'when a server refuses the facts' do
    let(:facts) { { 'kernel' => 'Linux' } }
    let(:too_large) { [413, '{"kind":"payload-too-large","msg":"too large"}'] }

    # Keeps an answer, so that it could stand in.
    def asked_before(*answers)
      stub([200, GOOD.merge('classes' => { 'old' => {} })], *answers).tap do |server|
        configure(server.entry)
        find(facts: facts)
      end
    end

    it 'finds a conflict, or an error of a rule, by those that it knows' do
      error = CONFLICT.merge('kind' => 'rule-evaluation-error', 'msg' => 'too long')
      [[413, CONFLICT], [400, CONFLICT], [413, error]].each_with_index do |(status, reason), index|
        server = asked_before([status, '<html>'], [500, reason])
        second = stub([503, '{}'], [500, CONFLICT])
        configure([server.entry, second.entry])
        File.utime(Time.now, Time.now + index + 1, "#{@home}/conf/classifier.yaml")
        expect { find(facts: facts) }.to raise_error(Puppet::Error, /could not classify web1: #{reason['msg']}/)
        full, bare = server.requests.last(2)
        expect([full['body']['fact'], bare['line']]).to eq([facts, 'POST /hiera/web1 HTTP/1.1'])
        expect(bare['body']).to eq('trusted' => full['body']['trusted'])
        expect(second.requests.size).to eq(1)
      end
    end

    it 'asks the next server before anything is asked without them' do
      first = stub(too_large, [500, CONFLICT])
      second = stub([200, GOOD])
      configure([first.entry, second.entry])
      expect(find(facts: facts).classes).to eq(GOOD['classes'])
      expect([first, second].map { |it| it.requests.size }).to eq([1, 1])
      expect(second.requests.first['body']['fact']).to eq(facts)
    end

    it 'asks each that refuses them, and uses no answer without them' do
      unknown = [404, '{"kind":"not-found","msg":"x"}']
      [[200, '{}'], unknown, [503, '{}']].each_with_index do |bare, index|
        servers = [asked_before(too_large, bare), stub(too_large, bare)]
        configure(servers.map(&:entry))
        File.utime(Time.now, Time.now + (2 * index) + 1, "#{@home}/conf/classifier.yaml")
        expect(find(facts: facts).classes).to eq('old' => {})
        expect(servers.map { |it| it.requests.size }).to eq([3, 2])
      end
      configure([stub(too_large, unknown).entry, stub(too_large, [500, CONFLICT]).entry])
      File.utime(Time.now, Time.now + 60, "#{@home}/conf/classifier.yaml")
      expect { find(facts: facts) }.to raise_error(Puppet::Error, /could not classify web1: The node was classified/)
    end

    it 'uses the last good answer, or fails' do
      asked_before(too_large, [200, '{}'], too_large, [200, '{}'])
      expect(find(facts: facts).classes).to eq('old' => {})
      expect(@warnings.last).to match(/answers 413: too large; for web1 the last good answer stands in/)
      expect { find('web2', facts: facts) }.to raise_error(Puppet::Error, /answers 413: too large; there is no last good/)
    end

    it 'asks once where there are none, or where something else is wrong' do
      [[too_large, {}], [[503, '{}'], facts], [[401, '{}'], facts]].each_with_index do |(answer, sent), index|
        server = stub(answer, [500, CONFLICT])
        configure(server.entry)
        File.utime(Time.now, Time.now + index + 1, "#{@home}/conf/classifier.yaml")
        expect { find(facts: sent) }.to raise_error(Puppet::Error, /no last good answer/)
        expect(server.requests.size).to eq(1)
      end
    end
  end

  it 'says of a conflict what an agent would need the details for, without the values' do
    web, base, db = %w[Web Base Database].map { |name| { 'name' => name } }
    differ = [
      { 'value' => 'secret', 'from' => web, 'defined_by' => base },
      { 'value' => 2, 'from' => db, 'defined_by' => db }
    ]
    details = { 'environment' => differ, 'variables' => { 'v' => differ }, 'classes' => { 'c' => { 'p' => differ } } }
    msg = 'The node was classified into groups. See the `details` key for all conflicts.'
    server = stub([500, CONFLICT.merge('msg' => msg, 'details' => details)])
    configure(server.entry)
    by = 'by "Web" (inherited from "Base") and "Database"'
    expect { find }.to raise_error(Puppet::Error) { |error|
      expect(error.message).to end_with(
        "into groups. Set differently: the environment #{by}; \"v\" #{by}; \"c::p\" #{by}."
      )
    }
  end

  it 'refuses names that lead elsewhere' do
    server = stub([200, GOOD])
    configure(server.entry)
    ['../x', 'a/b', '..', '.x', "a\nb", ''].each do |name|
      expect { find(name) }.to raise_error(Puppet::Error, /is not a certname/)
    end
    expect(server.requests).to be_empty
  end

  it 'reads a hash, a list, and says what is wrong' do
    settings = PuppetX::Clade::Settings.new({ 'server' => 'a', 'prefix' => '/classifier-api' })
    expect(settings.servers.map(&:url)).to eq(['https://a:4433'])
    expect([settings.timeout, settings.max_stale]).to eq([5, 86_400])
    settings = PuppetX::Clade::Settings.new([{ 'server' => 'a', 'port' => '1' }, { 'server' => 'b', 'timeout' => 2 }])
    expect(settings.servers.map(&:url)).to eq(['https://a:1', 'https://b:4433'])
    expect(settings.timeout).to eq(2)
    PuppetX::Clade::Settings.new({ 'server' => 'a', 'timout' => 1 })
    expect(@warnings.last).to match(/nothing is known of timout/)
    [nil, [], 'x', {}, [{ 'port' => 1 }], { 'server' => 'a', 'timeout' => 'soon' }].each do |wrong|
      expect { PuppetX::Clade::Settings.new(wrong) }.to raise_error(Puppet::Error, /classifier.yaml/)
    end
  end
end
