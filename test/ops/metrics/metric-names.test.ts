// The rules of `promtool check metrics` for names, types and labels, so that a new metric cannot break them on a
// machine without promtool. test/system/monitoring.test.ts asks promtool itself.

import { describe, expect, test } from 'vitest'
import { durationHistograms, metricCatalogue } from '../../../src/ops/ops.ts'

type Shape = { name: string; type: string; help: string; labels: readonly string[] }

const metrics: readonly Shape[] = [
  ...metricCatalogue,
  ...durationHistograms.map((one) => ({ ...one, type: 'histogram' as const })),
]

const baseUnits = ['bytes', 'seconds', 'celsius', 'meters', 'grams', 'joules', 'volts', 'amperes', 'ratio']
const otherUnits =
  /^(?:(?:pico|nano|micro|milli|centi|deci|deca|hecto|kilo|kibi|mega|mebi|giga|gibi|tera|tebi)\w+|minutes|hours|days|weeks|bits|inches|yards|miles)$/
const abbreviations = new Set('s ms us ns sec b kb mb gb tb pb m h d'.split(' '))
const types = new Set(['counter', 'gauge', 'summary', 'histogram'])

function problemsOf({ name, type, help, labels }: Shape): string[] {
  const words = name.split('_')
  const problems: string[] = []
  if (!/^(gateway|process)(_[a-z][a-z0-9]*)+$/.test(name)) problems.push('not in lower case with underscores')
  if (!/^\S.*\.$/.test(help)) problems.push('no help')
  if ((type === 'counter') !== name.endsWith('_total'))
    problems.push('_total is for counters, and only for them')
  if (/_(count|sum|bucket)$/.test(name)) problems.push('the suffix is that of a series of a histogram')
  for (const word of words) {
    if (types.has(word)) problems.push(`the type ${word} is in the name`)
    if (otherUnits.test(word)) problems.push(`${word} is no base unit`)
    if (abbreviations.has(word)) problems.push(`${word} is an abbreviation of a unit`)
  }
  const unit = words.findIndex((word) => baseUnits.includes(word))
  const last = words.at(-1) === 'total' ? words.length - 2 : words.length - 1
  if (unit >= 0 && unit !== last) problems.push('the unit is not at the end')
  for (const label of labels) {
    if (['le', 'quantile'].includes(label))
      problems.push(`the label ${label} is that of a histogram or summary`)
    if (!/^[a-z_]+$/.test(label)) problems.push(`the label ${label} is not in lower case`)
  }
  return problems.map((problem) => `${name}: ${problem}`)
}

describe('the metrics', () => {
  test('have names, types and labels as promtool wants them', () => {
    expect(metrics.flatMap(problemsOf)).toEqual([])
  })

  test('have each name once', () => {
    const names = metrics.map(({ name }) => name)
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
  })
})
