# frozen_string_literal: true

require 'fileutils'
require 'pathname'
require 'time'
require 'puppet/file_system'

module PuppetX::Clade
  # The last good answer of each node, for when no server answers.
  class LastGood
    # How far, in seconds, a clock may be set back, such as by NTP, while the ages of answers stay known.
    CLOCK_STEP = 60

    Kept = Struct.new(:answer, :age)

    def initialize(settings)
      @settings = settings
    end

    # Keeps an answer. Only its owner may read it, since parameters can be secrets.
    def keep(kind, name, answer)
      return unless @settings.max_stale.positive?

      path = path(kind, name)
      return unless ours?(path)

      FileUtils.mkdir_p(File.dirname(path), mode: 0o700)
      text = JSON.generate('answered_at' => Time.now.utc.iso8601, 'answer' => answer)
      Puppet::FileSystem.replace_file(path, 0o600) { |file| file.write(text) }
    rescue SystemCallError, Puppet::Error => e
      Puppet.warning("This answer for #{name} cannot be kept: #{e.message}")
    end

    # Returns an answer that is not too old, and whose age is known, or nil.
    def take(kind, name)
      return nil unless @settings.max_stale.positive?

      kept = JSON.parse(File.read(path(kind, name), encoding: 'UTF-8'))
      age = (Time.now - Time.iso8601(kept['answered_at'])).round
      if age < -CLOCK_STEP
        # The clock was set back: the answer may be of any age, and would stand in for ever.
        Puppet.warning("The last good answer for #{name} is of a time to come, so its age is not known")
        return nil
      end
      age = [age, 0].max
      age <= @settings.max_stale ? Kept.new(kept['answer'], age) : nil
    rescue Errno::ENOENT
      nil
    rescue SystemCallError, JSON::ParserError, ArgumentError, TypeError => e
      Puppet.warning("The last good answer for #{name} cannot be read: #{e.message}")
      nil
    end

    private

    # Returns whether only we can change the directories of a path. Root, who runs `puppet lookup` by hand,
    # keeps nothing where another user could put a link in its way.
    def ours?(path)
      return true unless Process.euid.zero?

      Pathname.new(File.expand_path(path)).ascend.all? do |it|
        stat = it.lstat
        stat.uid.zero? && !stat.symlink? && ((stat.mode & 0o022).zero? || stat.sticky?)
      rescue Errno::ENOENT
        true
      end
    end

    def path(kind, name)
      File.join(@settings.cache_dir, kind, "#{name}.json")
    end
  end
end
