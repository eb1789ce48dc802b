// source-yaml.ts: writes a proposal as the section `sources` of a config, with comments.

import { stringify } from 'yaml'
import { embeddedBrokerName } from '../domain/message.ts'
import { isForBridge } from './bridge-topics.ts'
import type { Proposal, Proposed } from './types.ts'

/** `bridge`: the name of the bridge that brings the messages. */
export function sourcesYaml({ proposals }: Pick<Proposed, 'proposals'>, bridge: string): string {
  if (proposals.length === 0) return ''
  return `sources:\n${proposals.map((proposal) => sourceText(proposal, bridge)).join('')}`
}

function sourceText(proposal: Proposal, bridge: string): string {
  const { source, shapes, fit, notes } = proposal
  const messages = shapes.reduce((sum, shape) => sum + shape.messages, 0)
  const [first] = shapes
  const more = shapes.length > 1 ? ` and ${shapes.length - 1} more` : ''
  const summary = `${messages} messages on ${plain(first?.filter ?? '')}${more}`
  const model =
    fit.withoutModel === null ? [] : [`model: NAME   Set the model: ${fit.withoutModel} depend on it.`]
  const isBridged = isForBridge(proposal)
  const comments = [summary, ...notes, ...(isBridged ? [] : directly), ...model].map(
    (line) => `  # ${line}\n`,
  )
  const { name, ...rest } = source
  const written = { name, from: [isBridged ? bridge : embeddedBrokerName], ...rest }
  const lines = stringify(written, { lineWidth: 100 }).trimEnd().split('\n')
  const item = lines.map((line, index) => `  ${index === 0 ? '-' : ' '} ${line}\n`)
  return comments.join('') + item.join('')
}

/** A broker does not say which client published. */
const directly = [
  'A bridge does not know the client id. Connect these devices to the gateway itself (ingest.broker.listeners),',
  'or, with one device only, set `from` to the bridge and `device` to its name, and add the topic to the bridge.',
]

/** A topic may contain characters that end a comment. */
function plain(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}
