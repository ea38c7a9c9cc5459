# frozen_string_literal: true

require 'uri'
require_relative 'conflict'

module PuppetX::Clade
  # The servers, of which one that is well is asked first.
  class Servers
    # How many are asked: one, and another if it cannot answer.
    ATTEMPTS = 2
    # How long, in seconds, one that failed is asked last.
    MEMORY = 30
    # The statuses by which a server refuses the facts.
    FACTS_REFUSED = [400, 413].freeze

    def initialize(settings)
      @settings = settings
      @failed = {}
      @lock = Mutex.new
    end

    # Yields a server and a way to ask it until an answer is usable, and returns that. Where no server answers, `check`
    # asks each that refuses the facts for what a last good answer must not hide.
    def ask(usable, check: nil, &post)
      deadline = now + @settings.timeout
      reasons = []
      refusing = []
      each_in_time(order.first(ATTEMPTS), deadline) do |server, seconds|
        answer = ask_one(server, usable, seconds, &post)
        is_well(server)
        return answer
      rescue Unanswered => e
        has_failed(server)
        reasons << e.message
        refusing << server if e.is_a?(FactsRefused)
      end
      find_refusal(refusing, deadline, &check) if check
      raise Unanswered, reasons.join('; ')
    end

    private

    # Puppet's HTTP client, with the host's certificate and Puppet's authority.
    class Http
      HEADERS = { 'Content-Type' => 'application/json', 'Accept' => 'application/json' }.freeze

      def initialize(server, options)
        @server = server
        @options = options
      end

      def post(path, body)
        Puppet.runtime[:http].post(url(path), body, headers: HEADERS.dup, options: @options.dup)
      end

      def get(path)
        Puppet.runtime[:http].get(url(path), headers: HEADERS.dup, options: @options.dup)
      end

      private

      def url(path)
        URI("#{@server.url}#{path}")
      end
    end

    # Yields servers, each with its seconds: one that hangs must leave time for the others.
    def each_in_time(servers, deadline)
      servers.each_with_index do |server, index|
        left = [deadline - now, 0].max
        yield server, left / (servers.size - index)
      end
    end

    def ask_one(server, usable, seconds)
      judge(server, usable, within(seconds, server) { |http| yield server, http })
    end

    # Raises the conflict, or the error of a rule, that one of the servers finds. Any other answer is not that of the
    # facts that they refused.
    def find_refusal(servers, deadline, &check)
      each_in_time(servers, deadline) do |server, seconds|
        ask_one(server, ->(_) { true }, seconds, &check)
      rescue NotFound, Unanswered
        nil
      end
    end

    # Puppet Server's HTTP client has no time-out that one request could set, so the request runs
    # beside, and is left to itself when its time is up.
    def within(seconds, server)
      http = Http.new(server, ssl_options)
      work = Thread.new do
        Thread.current.report_on_exception = false
        yield http
      end
      return work.value if work.join(seconds)

      work.kill
      :too_late
    rescue StandardError => e
      # Whatever goes wrong on the way to this server, another may be reached.
      e
    end

    # What is looked up in Puppet's context is that of this thread.
    def ssl_options
      return {} if defined?(Puppet::HTTP::ExternalClient) && Puppet.runtime[:http].is_a?(Puppet::HTTP::ExternalClient)
      return {} unless @settings.servers.any? { |it| it.scheme == 'https' }

      { ssl_context: Puppet.lookup(:ssl_context) }
    end

    def judge(server, usable, response)
      raise Unanswered, "#{server.url} did not answer in time" if response == :too_late
      raise Unanswered, "#{server.url} cannot be asked: #{reasons(response)}" if response.is_a?(Exception)

      body = parsed(response.body)
      return body if response.success? && usable.call(body)
      raise Unanswered, "#{server.url} answers #{response.code} with an invalid body" if response.success?

      message = body.is_a?(Hash) && body['msg'] || response.reason
      kind = body.is_a?(Hash) && body['kind']
      raise Refused, Conflict.in_words(message, body['details']) if kind == 'classification-conflict'
      raise Refused, message if kind == 'rule-evaluation-error'
      raise NotFound, message if kind == 'not-found'

      error = FACTS_REFUSED.include?(response.code) ? FactsRefused : Unanswered
      raise error, "#{server.url} answers #{response.code}: #{message}"
    end

    # Puppet Server's client names what happened in the cause only.
    def reasons(error)
      [error, error.cause].compact.map(&:message).uniq.join(': ')
    end

    def parsed(text)
      JSON.parse(text)
    rescue JSON::ParserError
      nil
    end

    def order
      failed = @lock.synchronize { @failed.dup }
      lately = ->(server) { failed[server.url] if failed[server.url] && now - failed[server.url] < MEMORY }
      @settings.servers.each_with_index.sort_by { |server, index| [lately.call(server) || -1, index] }.map(&:first)
    end

    def is_well(server)
      @lock.synchronize { @failed.delete(server.url) }
    end

    def has_failed(server)
      @lock.synchronize { @failed[server.url] = now }
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
