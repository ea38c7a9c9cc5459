# frozen_string_literal: true

require 'json'
require 'socket'
require 'tmpdir'
require 'puppet'

$LOAD_PATH.unshift(File.expand_path('../lib', __dir__))
require 'puppet_x/clade/classifier'
require 'puppet/indirector/node/clade'

# A server that gives the answers it was given, one after the other, the last one for ever.
class Stub
  attr_reader :port, :requests

  def initialize(*answers)
    @socket = TCPServer.new('127.0.0.1', 0)
    @port = @socket.addr[1]
    @requests = []
    @answers = answers
    @thread = Thread.new { serve }
  end

  def stop
    @thread.kill
    @socket.close
  end

  def entry
    { 'server' => '127.0.0.1', 'port' => @port, 'prefix' => 'classifier-api/', 'scheme' => 'http' }
  end

  private

  def serve
    loop do
      client = @socket.accept
      head = +''
      head << client.gets until head.end_with?("\r\n\r\n")
      length = head[/^content-length: (\d+)/i, 1].to_i
      @requests << { 'line' => head.lines.first.strip, 'body' => length.zero? ? nil : JSON.parse(client.read(length)) }
      status, body = @answers.size > 1 ? @answers.shift : @answers.first
      if status == :hang
        sleep
      else
        client.write("HTTP/1.1 #{status} X\r\nContent-Length: #{body.bytesize}\r\nConnection: close\r\n\r\n#{body}")
        client.close
      end
    end
  end
end

RSpec.configure do |config|
  config.before do
    @home = Dir.mktmpdir
    Puppet.initialize_settings(
      %w[conf code var log run public].flat_map { |it| ["--#{it}dir", "#{@home}/#{it}"] }, true, true, {}
    ) unless Puppet.settings.app_defaults_initialized?
    Puppet[:vardir] = "#{@home}/var"
    Puppet[:confdir] = "#{@home}/conf"
    FileUtils.mkdir_p("#{@home}/conf")
    @stubs = []
    @warnings = []
    allow(Puppet).to receive(:warning) { |text| @warnings << text }
  end

  config.after do
    @stubs.each(&:stop)
    FileUtils.rm_rf(@home)
  end
end
