# frozen_string_literal: true

require 'puppet/node'
require 'puppet/indirector/code'
require_relative '../../../puppet_x/clade/classifier'

# The node terminus of Clade: `node_terminus = clade` in puppet.conf.
#
# It runs inside Puppet Server, so unlike an external program it has the facts of this very request
# and the trusted data that the agent's certificate proves.
class Puppet::Node::Clade < Puppet::Indirector::Code
  desc 'Asks Clade which classes, parameters and environment a node gets; see classifier.yaml.'

  AGENT_SPECIFIED = 'agent-specified'

  def find(request)
    facts = facts_of(request)
    answer = PuppetX::Clade::Classifier.instance.classify(request.key, body(request, facts))
    node = Puppet::Node.new(
      request.key,
      classes: answer['classes'],
      parameters: answer['parameters'],
      environment: environment(answer, request)
    )
    node.fact_merge(facts)
    node.extend(PuppetX::Clade::ConfigData)
    node.clade_config_data = answer['config_data'] || {}
    node
  end

  private

  def environment(answer, request)
    name = answer['environment']
    name.nil? || name.empty? || name == AGENT_SPECIFIED ? request.environment : name
  end

  # A request for a catalog brings facts; one for a node does not, and a new node has none at all.
  def facts_of(request)
    given = request.options[:facts]
    return given if given.is_a?(Puppet::Node::Facts)

    Puppet::Node::Facts.indirection.find(request.key, environment: request.environment)
  end

  def body(request, facts)
    # Agents can send a fact called `trusted`; what is trusted comes from the certificate alone.
    fact = facts.nil? ? {} : facts.values.reject { |name, _| name.to_s == 'trusted' }
    body = { 'fact' => fact, 'trusted' => trusted(request.key) }
    uuid = request.options[:transaction_uuid]
    body['transaction_uuid'] = uuid if uuid
    body
  end

  def trusted(name)
    known = Puppet.lookup(:trusted_information) { nil }
    known = known.nil? ? {} : known.to_h
    # Who asks about another node proves nothing about that one.
    known['certname'] == name ? known : { 'certname' => name }
  end
end
