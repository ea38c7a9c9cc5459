# frozen_string_literal: true

module PuppetX::Clade
  # What an agent is told of a conflict: it sees the message of the API, and not its `details`.
  module Conflict
    # How many keys are named; this is one line of a log.
    KEYS = 10
    POINTER = / See the `details` key for all conflicts\.\z/

    # Puts which group sets what into the message. The values can be secrets, so they stay out of logs.
    def self.in_words(message, details)
      return message unless message.match?(POINTER) && details.is_a?(Hash)

      keys = keys(details)
      more = keys.size > KEYS ? "; and #{keys.size - KEYS} more" : ''
      "#{message.sub(POINTER, '')} Set differently: #{keys.first(KEYS).join('; ')}#{more}."
    rescue NoMethodError, TypeError
      # A classifier that is not Clade may have details of its own shape.
      message
    end

    def self.keys(details)
      plain = [['the environment', details['environment']]]
      plain += details.fetch('variables', {}).map { |name, values| [name.inspect, values] }
      nested = details.fetch('classes', {}).to_a + details.fetch('config_data', {}).to_a
      nested = nested.flat_map { |name, keys| keys.map { |key, values| ["#{name}::#{key}".inspect, values] } }
      (plain + nested).reject { |_, values| values.nil? }.map do |key, values|
        "#{key} by #{values.map { |it| group(it) }.join(' and ')}"
      end
    end

    def self.group(value)
      leaf, source = value.values_at('from', 'defined_by').map { |it| it['name'].inspect }
      leaf == source ? leaf : "#{leaf} (inherited from #{source})"
    end

    private_class_method :keys, :group
  end
end
