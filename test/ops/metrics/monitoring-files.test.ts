// config/monitoring has alert rules with tests and a dashboard. promtool checks the syntax (test/system); here every
// metric, label and label value in them is compared with the catalogue, and every command with the command line.

import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { keptStoreNames } from '../../../src/domain/kept-store.ts'
import { severities } from '../../../src/domain/cause.ts'
import { conditionCatalogue } from '../../../src/ops/conditions/condition-catalogue.ts'
import { verdicts } from '../../../src/ops/gateway-verdict/gateway-verdict.ts'
import { durationHistograms, metricCatalogue } from '../../../src/ops/ops.ts'
import { runCli } from '../../support/cli-world.ts'

const root = resolve(import.meta.dirname, '../../..')
const textOf = (name: string) => readFileSync(join(root, 'config/monitoring', name), 'utf8')

type Rule = {
  alert: string
  expr: string
  labels: { severity: string }
  annotations: { summary: string; description: string }
}
type RuleTest = {
  input_series: { series: string }[]
  promql_expr_test: { expr: string; exp_samples: unknown[] }[]
}
type Panel = {
  id: number
  title: string
  type: string
  description?: string
  gridPos: { h: number; w: number; x: number; y: number }
  targets?: { expr: string; legendFormat: string }[]
}

const rules = (parse(textOf('alert-rules.yaml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  ({ rules }) => rules,
)
const ruleTests = (parse(textOf('alert-rules.test.yaml')) as { tests: RuleTest[] }).tests
const dashboard = JSON.parse(textOf('grafana-dashboard.json')) as { panels: Panel[] }
const panels = dashboard.panels.filter(({ type }) => type !== 'row')

/** Labels that Prometheus adds to every series. */
const targetLabels = ['job', 'instance']

const labelsOf = new Map<string, readonly string[]>([
  ...metricCatalogue.map(({ name, labels }): [string, readonly string[]] => [name, labels]),
  ...durationHistograms.flatMap(({ name, labels }) =>
    ['bucket', 'sum', 'count'].map((suffix): [string, readonly string[]] => [
      `${name}_${suffix}`,
      suffix === 'bucket' ? [...labels, 'le'] : labels,
    ]),
  ),
  // What Prometheus itself knows of a target.
  ['up', []],
])

/** The values of labels that have a closed set. */
const valuesOf: Record<string, readonly string[]> = {
  verdict: [...verdicts, 'future', 'unset', 'old', 'restamped'],
  severity: severities,
  code: Object.keys(conditionCatalogue),
  store: keptStoreNames,
  role: ['live', 'backfill', 'retry'],
  state: ['available', 'unavailable', 'unauthorized'],
  by: ['operator', 'age'],
}

/** What is wrong with the metrics, labels and label values of an expression. */
function problemsOf(expr: string): string[] {
  const problems: string[] = []
  const bare = expr.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""')
  const names = [...new Set(bare.match(/\b(?:up|(?:gateway|process)_\w+)\b/g))]
  if (names.length === 0) problems.push('it has no metric')
  const known = new Set(targetLabels)
  for (const name of names) {
    const labels = labelsOf.get(name)
    if (labels === undefined) problems.push(`there is no metric ${name}`)
    for (const label of labels ?? []) known.add(label)
  }
  for (const [, name = '', matchers = ''] of expr.matchAll(/\b(up|(?:gateway|process)_\w+)\{([^}]*)\}/g))
    for (const [, label = '', operator = '', value = ''] of matchers.matchAll(
      /(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"/g,
    )) {
      if (!targetLabels.includes(label) && labelsOf.get(name)?.includes(label) === false)
        problems.push(`${name} has no label ${label}`)
      const values = valuesOf[label]
      const pattern = operator.endsWith('~') ? new RegExp(`^(?:${value})$`) : null
      if (values?.some((one) => pattern?.test(one) ?? one === value) === false)
        problems.push(`${label} is never ${value}`)
    }
  for (const [, list = ''] of bare.matchAll(/\b(?:by|on|without|ignoring)\s*\(([^)]*)\)/g))
    for (const label of list.split(',').map((one) => one.trim()))
      if (!known.has(label)) problems.push(`no metric in it has a label ${label}`)
  return problems
}

/** Labels of a result: those that are grouped by, else those of its metrics. */
function labelsOfResult(expr: string): string[] {
  const grouped = [...expr.matchAll(/\bby\s*\(([^)]*)\)/g)].flatMap(([, list = '']) =>
    list.split(',').map((one) => one.trim()),
  )
  if (grouped.length > 0) return grouped
  const names = expr.match(/\b(?:up|(?:gateway|process)_\w+)\b/g) ?? []
  return [...targetLabels, ...names.flatMap((name) => labelsOf.get(name) ?? [])]
}

describe('the alert rules', () => {
  test('use metrics, labels and values that exist', () => {
    expect(
      rules.flatMap(({ alert, expr }) => problemsOf(expr).map((problem) => `${alert}: ${problem}`)),
    ).toEqual([])
  })

  test('have a name of their own and a severity', () => {
    const names = rules.map(({ alert }) => alert)
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
    for (const { alert, labels } of rules) {
      expect(alert).toMatch(/^Gateway[A-Z]\w+$/)
      expect(['critical', 'warning', 'info']).toContain(labels.severity)
    }
  })

  test.each(rules)('$alert says what is wrong, and which command to run', async ({ expr, annotations }) => {
    const { summary, description } = annotations
    for (const text of [summary, description]) expect(text).toMatch(/^[A-Z{].*\.$/)
    const named = [...`${summary} ${description}`.matchAll(/\$labels\.(\w+)/g)].map(([, label = '']) => label)
    expect(named.filter((label) => !labelsOfResult(expr).includes(label))).toEqual([])
    const commands = [...description.matchAll(/`telemetry-gateway ([a-z- ]+)`/g)].map(
      ([, words = '']) => words,
    )
    const others = /`(?:journalctl|systemctl|dmesg|df|promtool)[^`]*`/.test(description)
    expect(commands.length > 0 || others).toBe(true)
    for (const words of commands) {
      const { status, stdout } = await runCli([...words.split(' '), '--help'])
      expect([words, status, stdout]).toEqual([
        words,
        0,
        expect.stringContaining(`Usage: telemetry-gateway ${words}`),
      ])
    }
  })

  test.each(rules)('$alert has a test in which it fires, and one in which it does not', ({ alert }) => {
    const expected = ruleTests
      .flatMap(({ promql_expr_test: tests }) => tests)
      .filter(({ expr }) => expr.includes(`alertname="${alert}"`))
    expect(expected.some(({ exp_samples: samples }) => samples.length > 0)).toBe(true)
    expect(expected.some(({ exp_samples: samples }) => samples.length === 0)).toBe(true)
  })

  test('have tests with metrics, labels and values that exist', () => {
    const series = ruleTests.flatMap(({ input_series: all }) => all.map(({ series }) => series))
    expect(series.flatMap(problemsOf)).toEqual([])
  })
})

describe('the dashboard', () => {
  const targets = panels.flatMap(({ title, targets = [] }) => targets.map((target) => ({ title, ...target })))

  test('uses metrics, labels and values that exist', () => {
    expect(targets.length).toBeGreaterThan(40)
    expect(
      targets.flatMap(({ title, expr }) => problemsOf(expr).map((problem) => `${title}: ${problem}`)),
    ).toEqual([])
    const query = JSON.stringify(dashboard).match(/label_values\((\w+)/)?.[1] ?? ''
    expect(labelsOf.has(query)).toBe(true)
  })

  test('has legends of labels that the results have', () => {
    const wrong = targets.flatMap(({ title, expr, legendFormat }) =>
      [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)]
        .map(([, label = '']) => label)
        .filter((label) => !labelsOfResult(expr).includes(label))
        .map((label) => `${title}: ${label}`),
    )
    expect(wrong).toEqual([])
  })

  test('has panels with an id of their own and a description, none above another', () => {
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length)
    for (const { title, description } of panels)
      expect([title, description]).toEqual([title, expect.stringMatching(/\.$/)])
    const taken = new Set<string>()
    for (const { title, gridPos } of dashboard.panels)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1)
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
          expect([title, x < 24 && !taken.has(`${x}|${y}`)]).toEqual([title, true])
          taken.add(`${x}|${y}`)
        }
  })

  test('selects the gateway in every expression', () => {
    for (const { title, expr } of targets)
      for (const [name] of expr.matchAll(/\b(?:gateway|process)_\w+/g))
        expect([title, expr.includes(`${name}{job="telemetry-gateway", instance=~"$instance"`)]).toEqual([
          title,
          true,
        ])
  })
})
