// source-yaml.ts: writes a proposal as the section `sources` of a config, with comments.

import { stringify } from 'yaml'
import type { Proposal, Proposed } from './types.ts'

export function sourcesYaml({ proposals }: Pick<Proposed, 'proposals'>): string {
  if (proposals.length === 0) return ''
  return `sources:\n${proposals.map(sourceText).join('')}`
}

function sourceText({ source, shapes, fit, notes }: Proposal): string {
  const messages = shapes.reduce((sum, shape) => sum + shape.messages, 0)
  const [first] = shapes
  const more = shapes.length > 1 ? ` and ${shapes.length - 1} more` : ''
  const summary = `${messages} messages on ${plain(first?.filter ?? '')}${more}`
  const model =
    fit.withoutModel === null ? [] : [`model: NAME   Set the model: ${fit.withoutModel} depend on it.`]
  const comments = [summary, ...notes, ...model].map((line) => `  # ${line}\n`)
  const lines = stringify(source, { lineWidth: 100 }).trimEnd().split('\n')
  const item = lines.map((line, index) => `  ${index === 0 ? '-' : ' '} ${line}\n`)
  return comments.join('') + item.join('')
}

/** A topic may contain characters that end a comment. */
function plain(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}
