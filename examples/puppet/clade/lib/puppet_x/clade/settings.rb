# frozen_string_literal: true

require 'puppet/util/yaml'

module PuppetX::Clade
  # What classifier.yaml says: one server, or a list of them in the order in which they are asked.
  class Settings
    Server = Struct.new(:host, :port, :prefix, :scheme) do
      def url
        "#{scheme}://#{host}:#{port}"
      end
    end

    OF_A_SERVER = %w[server port prefix scheme].freeze
    OF_ALL = { 'timeout' => 5, 'max_stale' => 86_400, 'cache_dir' => nil }.freeze

    attr_reader :servers, :timeout, :max_stale, :cache_dir

    def self.read(path)
      new(Puppet::Util::Yaml.safe_load_file(path), path)
    rescue Puppet::Util::Yaml::YamlLoadError => e
      raise Puppet::Error, "#{path} cannot be read: #{e.message}"
    end

    def initialize(document, path = 'classifier.yaml')
      entries = document.is_a?(Array) ? document : [document]
      unless !entries.empty? && entries.all? { |it| it.is_a?(Hash) && it['server'].is_a?(String) }
        raise Puppet::Error, "#{path} must be a hash with `server`, or a list of such hashes"
      end

      check_keys(entries, path)
      @servers = entries.map { |it| server(it) }
      # What is said of one server is said of all: there is one wait for one answer.
      said = entries.reduce({}) { |all, it| it.merge(all) }
      @timeout = number(said, 'timeout', path)
      @max_stale = number(said, 'max_stale', path)
      @cache_dir = said['cache_dir'] || File.join(Puppet[:vardir], 'clade', 'terminus')
    end

    private

    def server(entry)
      prefix = entry.fetch('prefix', '').to_s.chomp('/')
      prefix = "/#{prefix}" unless prefix.empty? || prefix.start_with?('/')
      Server.new(entry['server'], Integer(entry.fetch('port', 4433)), prefix, entry.fetch('scheme', 'https'))
    end

    def number(said, key, path)
      Float(said.fetch(key, OF_ALL[key]))
    rescue ArgumentError, TypeError
      raise Puppet::Error, "#{path}: `#{key}` must be a number of seconds"
    end

    def check_keys(entries, path)
      unknown = entries.flat_map(&:keys).uniq - OF_A_SERVER - OF_ALL.keys
      Puppet.warning("#{path}: nothing is known of #{unknown.join(', ')}") unless unknown.empty?
    end
  end
end
