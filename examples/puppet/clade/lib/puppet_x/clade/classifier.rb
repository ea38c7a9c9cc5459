# frozen_string_literal: true

require 'json'
require 'puppet'

module PuppetX; end

module PuppetX::Clade
  # No server answered.
  class Unanswered < Puppet::Error; end

  # A server refuses the facts: they are too many, or it cannot read them.
  class FactsRefused < Unanswered; end

  # A server answered that this node cannot be classified. Another would say the same, and an older
  # answer would hide it.
  class Refused < Puppet::Error; end

  # A server does not know the node, or not what it needs to know of it.
  class NotFound < Refused; end

  # What a node carries for the function `clade::data`.
  module ConfigData
    attr_accessor :clade_config_data
  end

  # Asks the servers of classifier.yaml, and keeps the last good answer of each node.
  class Classifier
    # Returns the one of the settings as they are; who failed is forgotten when they change.
    def self.instance
      path = File.join(Puppet[:confdir], 'classifier.yaml')
      stamp = [path, File.exist?(path) ? File.mtime(path) : nil]
      @lock.synchronize do
        @instance = new(Settings.read(path)) unless @stamp == stamp && @instance
        @stamp = stamp
        @instance
      end
    end

    @lock = Mutex.new

    def initialize(settings, servers: nil, last_good: nil)
      @settings = settings
      @servers = servers || Servers.new(settings)
      @last_good = last_good || LastGood.new(settings)
    end

    # Returns classes, parameters, environment and config data of a node.
    def classify(name, body)
      answer('nodes', name) do
        check = known_facts(name, body) unless body['fact'].empty?
        @servers.ask(Classifier.method(:classified?), check: check) do |server, http|
          http.post("#{server.prefix}/v1/classified/nodes/#{name}", JSON.generate(body))
        end
      end
    end

    # Returns the config data of a node that was classified by something else, `clade enc` say, by the
    # facts and trusted data that stand in the body: the answer does not depend on what the daemon
    # that is asked knows of the node.
    def config_data(name, body)
      answer('hiera', name) do
        @servers.ask(->(data) { data.is_a?(Hash) }) do |_, http|
          http.post("/hiera/#{name}", JSON.generate(body))
        end
      end
    end

    def self.classified?(answer)
      answer.is_a?(Hash) && answer['classes'].is_a?(Hash) && answer['parameters'].is_a?(Hash)
    end

    private

    # Returns how to ask for a node by the facts that a daemon knows. It finds the same conflicts, it keeps nothing of
    # this question, and it refuses it where it knows no facts: a rule may match just because a fact is missing.
    def known_facts(name, body)
      text = JSON.generate('trusted' => body['trusted'])
      ->(_, http) { http.post("/hiera/#{name}", text) }
    end

    def answer(kind, name)
      Classifier.check_name(name)
      answer = yield
      @last_good.keep(kind, name, answer)
      answer
    rescue Unanswered => e
      kept = @last_good.take(kind, name)
      raise Puppet::Error, "Clade could not classify #{name}: #{e.message}; there is no last good answer" if kept.nil?

      Puppet.warning("#{e.message}; for #{name} the last good answer stands in, #{kept.age} s old")
      kept.answer
    rescue Refused => e
      raise Puppet::Error, "Clade could not classify #{name}: #{e.message}"
    end

    # A name is part of paths.
    def self.check_name(name)
      return if name.match?(/\A[A-Za-z0-9_-][A-Za-z0-9._-]*\z/) && !name.include?('..')

      raise Puppet::Error, "#{name.inspect} is not a certname"
    end
  end
end

require_relative 'settings'
require_relative 'servers'
require_relative 'last_good'
