// config-problem.ts: a problem that a section found in the config, and problems with their places as text.
// src/config adds file, line and column.

export type ConfigProblem = {
  /** Keys and list positions from the root of the config. */
  path: (string | number)[]
  /** What is wrong, to be read behind the path: `must be 1 to 64, found 0`. */
  message: string
}

/** A message with its end, unless it has one: a question, or several sentences. */
export function ended(message: string): string {
  return /[.?]$/.test(message) ? message : `${message}.`
}

type Placed = {
  line: number
  /** Where it is, at the begin of its line: `gateway.yaml:4:17`. */
  place: string
  message: string
  /** What makes two problems the same. */
  rule: string
}

const alwaysShown = 2
const linesShownMax = 40

/**
 * As lines for a person. The same problem in more than two places is one line with all its places, or one
 * wrong name fills the screen.
 */
export function groupedProblems(problems: readonly Placed[]): string[] {
  const groups = new Map<string, Placed[]>()
  for (const problem of problems) {
    const same = groups.get(problem.rule)
    if (same === undefined) groups.set(problem.rule, [problem])
    else same.push(problem)
  }
  const shown = problems.filter(({ rule }, index) => {
    const group = groups.get(rule) ?? []
    return group.length <= alwaysShown || group[0] === problems[index]
  })
  const width = Math.max(0, ...shown.map(({ place }) => place.length))
  return shown.map(({ place, message, rule }) => {
    const group = groups.get(rule) ?? []
    const more = group.length <= alwaysShown ? '' : ` ${othersText(group.slice(1))}`
    return `${place.padEnd(width)}  ${message}${more}`
  })
}

function othersText(others: readonly Placed[]): string {
  const lines = others.slice(0, linesShownMax).map(({ line }) => line)
  const more = others.length > linesShownMax ? ` and ${others.length - linesShownMax} more` : ''
  return `(${others.length + 1} times; also in the lines ${lines.join(', ')}${more})`
}
