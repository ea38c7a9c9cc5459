#!/usr/bin/env ruby
# frozen_string_literal: true

# An external node classifier: prints the classes of a node, from groups in YAML files.
#
# Usage: enc.rb NODE, with GROUPS_DIR and FACTS_DIR in the environment. With the names of more nodes it
# prints one JSON document a line, and on stderr how many milliseconds of computing reading and each node
# took.

require 'json'
require 'yaml'

def load_groups(directory)
  Dir.glob("#{directory}/**/*.yaml").sort.to_h do |path|
    group = YAML.safe_load_file(path)
    [group['name'], group]
  end
end

def load_facts(directory, node)
  JSON.parse(File.read("#{directory}/#{node}.json"))['values']
end

def lookup(node, facts, path)
  return node if path == 'name'

  value = path.drop(1).reduce(facts) { |it, key| it.is_a?(Hash) ? it[key] : nil }
  value&.to_s || (value == false ? 'false' : nil)
end

def compare(operator, value, expected)
  left = Float(value, exception: false)
  right = Float(expected, exception: false)
  !left.nil? && !right.nil? && left.public_send(operator, right)
end

def holds?(rule, node, facts)
  operator, *arguments = rule
  case operator
  when 'and' then arguments.all? { |it| holds?(it, node, facts) }
  when 'or' then arguments.any? { |it| holds?(it, node, facts) }
  when 'not' then !holds?(arguments.first, node, facts)
  else
    path, expected = arguments
    value = lookup(node, facts, path)
    return false if value.nil?

    case operator
    when '=' then value == expected
    when '~' then Regexp.new(expected).match?(value)
    else compare(operator, value, expected)
    end
  end
end

# Whether a node is in a group, and so in all groups above it.
def matches?(group, groups, node, facts, known)
  known.fetch(group['name']) do |name|
    known[name] = group['pinned']&.include?(node) || (
      !group['rule'].nil? && holds?(group['rule'], node, facts) &&
      (group['parent'].nil? || matches?(groups.fetch(group['parent']), groups, node, facts, known))
    )
  end
end

# What a group says wins over what it inherits.
def add(group, groups, classes)
  add(groups.fetch(group['parent']), groups, classes) if group['parent']
  group['classes']&.each { |name, parameters| (classes[name] ||= {}).merge!(parameters || {}) }
end

def classify(groups, node, facts)
  classes = {}
  known = {}
  groups.each_value do |group|
    add(group, groups, classes) if matches?(group, groups, node, facts, known)
  end
  { 'classes' => classes }
end

def millis
  began = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  result = yield
  [result, (Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - began) * 1000]
end

abort 'usage: enc.rb NODE' if ARGV.empty?
groups, reading = millis { load_groups(ENV.fetch('GROUPS_DIR')) }
facts_dir = ENV.fetch('FACTS_DIR')
if ARGV.one?
  puts classify(groups, ARGV.first, load_facts(facts_dir, ARGV.first)).to_yaml
else
  times = ARGV.map do |node|
    answer, took = millis { classify(groups, node, load_facts(facts_dir, node)) }
    puts JSON.generate(answer)
    took
  end
  warn JSON.generate([reading, *times])
end
