// yaml-blocks.ts: the proposal as the section `sources` of a config, as a person would write it.

import { stringify } from 'yaml'
import type { Proposal, Proposed } from './proposal.ts'

export function sourcesYaml({ proposals }: Pick<Proposed, 'proposals'>): string {
  if (proposals.length === 0) return ''
  return `sources:\n${proposals.map(sourceText).join('')}`
}

function sourceText({ source, shapes, fit, notes }: Proposal): string {
  const messages = shapes.reduce((sum, shape) => sum + shape.messages, 0)
  const [first] = shapes
  const more = shapes.length > 1 ? ` and ${shapes.length - 1} more` : ''
  const about = `${messages} messages on ${plain(first?.filter ?? '')}${more}`
  const model =
    fit.withoutModel === null ? [] : [`model: NAME   say which it is: ${fit.withoutModel} depend on it`]
  const comments = [about, ...notes, ...model].map((line) => `  # ${line}\n`)
  const lines = stringify(source, { lineWidth: 100 }).trimEnd().split('\n')
  const item = lines.map((line, index) => `  ${index === 0 ? '-' : ' '} ${line}\n`)
  return comments.join('') + item.join('')
}

/** A topic may hold what would end a comment. */
function plain(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}
