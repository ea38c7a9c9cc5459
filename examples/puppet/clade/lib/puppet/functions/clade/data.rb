# frozen_string_literal: true

require_relative '../../../puppet_x/clade/classifier'

# Hands the config data of a node's groups to Hiera: `data_hash: clade::data` in hiera.yaml.
#
# With the node terminus they came with the classification. For a node that something else
# classified, `clade enc` say, a daemon is asked, with the facts and the trusted data of this very
# catalog: any daemon can answer, also one with which the node has never checked in. Without an
# answer the catalog fails, since Hiera's defaults would be wrong data.
Puppet::Functions.create_function(:'clade::data') do
  # @param options what hiera.yaml says; nothing is known
  # @param context of the lookup
  # @return `class::key` to value
  dispatch :data do
    param 'Hash[String[1], Any]', :options
    param 'Puppet::LookupContext', :context
  end

  def data(_options, context)
    return context.cached_value('data') if context.cache_has_key('data')

    context.cache('data', of(closure_scope.compiler.node))
  end

  def of(node)
    unless node.respond_to?(:clade_config_data)
      return PuppetX::Clade::Classifier.instance.config_data(node.name, body(node))
    end

    node.clade_config_data.each_with_object({}) do |(name, keys), flat|
      keys.each { |key, value| flat["#{name}::#{key}"] = value }
    end
  end

  # What the node is in this catalog. Agents can send a fact called `trusted`; what is trusted comes
  # from the certificate alone.
  def body(node)
    facts = node.facts.nil? ? {} : node.facts.values.reject { |name, _| name.to_s == 'trusted' }
    trusted = node.trusted_data || {}
    { 'fact' => facts, 'trusted' => trusted.to_h }
  end
end
