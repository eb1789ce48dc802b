// allowed-topics.ts: the patterns of publish rules. A pattern is a topic filter of MQTT, whose levels may
// have names of the client in them:
//
//   telemetry/v1/{client}/#     fleet/{identity}/+     depot-{user}/position     {cn}/#
//
// A name stands for itself only: where it is missing, or has a character that means something in a topic
// (/ + #), the pattern allows nothing. So no client id such as "#" widens its rights.

import type { Sender } from '../../../domain/message.ts'

export type PublishRule = {
  /** The identities that it is for; null for every client. */
  identities: readonly string[] | null
  /** Patterns that patternProblem has checked. */
  topics: readonly string[]
}

export type MatchAllowed = (topic: string) => boolean

const names: Readonly<Record<string, (sender: Sender) => string | null>> = {
  client: ({ clientId }) => clientId,
  user: ({ userName }) => userName,
  cn: ({ certificateName }) => certificateName,
  identity: ({ identity }) => identity,
}

const placeholder = /\{([^{}]*)\}/g

/** What is wrong with a pattern, for the config; null for a valid one. */
export function patternProblem(pattern: string): string | null {
  if (pattern === '') return 'must not be empty'
  const levels = pattern.split('/')
  for (const [index, level] of levels.entries()) {
    if (level === '#' && index < levels.length - 1) return 'may have "#" only as its last level'
    if (level.length > 1 && /[+#]/.test(level)) return `has "${level}": "+" and "#" stand for whole levels`
    for (const [, name = ''] of level.matchAll(placeholder))
      if (!Object.hasOwn(names, name))
        return `names {${name}}; known are {client}, {user}, {cn} and {identity}`
    if (/[{}]/.test(level.replaceAll(placeholder, ''))) return 'has a "{" or "}" without its pair'
  }
  return null
}

/** Compiles the rules; the result compiles them for a client. */
export function compileRules(rules: readonly PublishRule[]): (sender: Sender) => MatchAllowed {
  return (sender) => {
    const filters: (readonly string[])[] = []
    for (const { identities, topics } of rules) {
      if (identities !== null && (sender.identity === null || !identities.includes(sender.identity))) continue
      for (const topic of topics) {
        const filter = filterFor(topic, sender)
        if (filter !== null) filters.push(filter)
      }
    }
    return (topic) => {
      const levels = topic.split('/')
      return filters.some((filter) => matches(filter, levels))
    }
  }
}

function filterFor(pattern: string, sender: Sender): readonly string[] | null {
  let isKnown = true
  const levels = pattern.split('/').map((level) =>
    level.replaceAll(placeholder, (_text, name: string) => {
      const value = names[name]?.(sender) ?? ''
      if (value === '' || /[/+#]/.test(value)) isKnown = false
      return value
    }),
  )
  return isKnown ? levels : null
}

function matches(filter: readonly string[], levels: readonly string[]): boolean {
  // [MQTT-4.7.2-1]
  const isReserved = levels[0]?.startsWith('$') === true
  for (const [index, level] of filter.entries()) {
    if (index === 0 && isReserved && (level === '#' || level === '+')) return false
    if (level === '#') return true
    if (index >= levels.length || (level !== '+' && level !== levels[index])) return false
  }
  return filter.length === levels.length
}
