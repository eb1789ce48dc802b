// syntax.ts: the text of an expression as a tree, by the parser of cel-js. Its evaluator is not used.

import { Environment, ParseError, type ASTNode } from '@marcbachmann/cel-js'
import { assertNever } from '../../std/assert.ts'
import { quote } from '../../std/quote.ts'
import { Malformed } from '../path/text-cursor.ts'

export type Node = ASTNode

const operators = ['in', '==', '!=', '<', '<=', '>', '>=', '+', '-', '*', '/', '%'] as const

/** An operation with two operands, which are both evaluated. */
export type Operator = Extract<Node, { op: (typeof operators)[number] }>

export function isOperator(node: Node): node is Operator {
  return operators.some((operator) => operator === node.op)
}

/** Also bounds the time of one step. */
const nodesMax = 500

const environment = new Environment({
  unlistedVariablesAreDyn: true,
  homogeneousAggregateLiterals: false,
  limits: {
    maxAstNodes: nodesMax,
    maxDepth: 50,
    maxListElements: 256,
    maxMapEntries: 64,
    maxCallArguments: 32,
  },
})

/** Throws Malformed. */
export function parseExpression(text: string): Node {
  try {
    const { ast } = environment.parse(text)
    refuseDashes(text, ast)
    return ast
  } catch (error) {
    if (!(error instanceof ParseError)) throw error
    const at = error.range === undefined ? '' : ` at position ${error.range.start + 1}`
    throw new Malformed(
      `is no expression: ${inWords(error.summary)}${at} of ${quote(text, 80)}${hintFor(text)}`,
    )
  }
}

/** The names of the parser for what can stand in a text. */
const tokens: Readonly<Record<string, string>> = {
  EOF: 'the end',
  NUMBER: 'a number',
  STRING: 'a text',
  BOOLEAN: 'true or false',
  NULL: 'null',
  IDENTIFIER: 'a name',
  PLUS: '+',
  MINUS: '-',
  MULTIPLY: '*',
  DIVIDE: '/',
  MODULO: '%',
  EQ: '==',
  NE: '!=',
  LT: '<',
  LE: '<=',
  GT: '>',
  GE: '>=',
  AND: '&&',
  OR: '||',
  NOT: '!',
  IN: 'in',
  LPAREN: '(',
  RPAREN: ')',
  LBRACKET: '[',
  RBRACKET: ']',
  LBRACE: '{',
  RBRACE: '}',
  DOT: '.',
  COMMA: ',',
  COLON: ':',
  QUESTION: '?',
  BYTES: 'bytes',
}

function inWords(summary: string): string {
  return summary.replaceAll(/\b[A-Z]{2,}\b/g, (name) => tokens[name] ?? name)
}

/** Refuses `a-b` and `a/b`, which could be meant as names of keys. */
function refuseDashes(text: string, ast: Node): void {
  for (const node of nodesOf(ast)) {
    if (node.op !== '-' && node.op !== '/') continue
    const [left, right] = node.args
    const between = text.slice(left.end, right.start)
    if (between !== node.op || !isName(left) || !isName(right)) continue
    const written = text.slice(left.start, right.end)
    throw new Malformed(
      `has ${quote(written, 80)}, which could be a key: write record[${JSON.stringify(written)}] for the key, ` +
        `or blanks around the ${node.op}`,
    )
  }
}

function isName({ op }: Node): boolean {
  return op === 'id' || op === '.'
}

function hintFor(text: string): string {
  if (/\[\s*\w+\s*=(?!=)/.test(text))
    return '; an element is chosen with filter: `list.filter(x, x.id == 2)[0]`'
  if (/(?<![=!<>])=(?!=)/.test(text)) return '; values are compared with =='
  if (/(?<!&)&(?!&)/.test(text))
    return '; a bit is read with bit(x, n), and both of two conditions are joined with &&'
  if (text.includes('$'))
    return '; $ belongs to paths: `$.x` is message.x here, `$up.x` outer.x, `$split(",")` split(",")'
  return /\b(?:and|or|not|AND|OR|NOT)\b/.test(text) ? '; conditions are joined with &&, || and !' : ''
}

/** A node and all below it. */
export function* nodesOf(node: Node): Generator<Node> {
  yield node
  for (const child of childrenOf(node)) yield* nodesOf(child)
}

export function childrenOf(node: Node): readonly Node[] {
  if (isOperator(node)) return node.args
  switch (node.op) {
    case 'value':
    case 'id':
      return []
    case '.':
    case '.?':
      return [node.args[0]]
    case '!_':
    case '-_':
      return [node.args]
    case 'call':
      return node.args[1]
    case 'rcall':
      return [node.args[1], ...node.args[2]]
    case 'map':
      return node.args.flat()
    case '?:':
    case 'list':
    case '[]':
    case '[?]':
    case '||':
    case '&&':
      return node.args
    default:
      return assertNever(node)
  }
}

/** The operands of `&&` or `||`, however many there are. */
export function operandsOf(node: Node, op: '&&' | '||'): Node[] {
  return node.op === op ? node.args.flatMap((operand) => operandsOf(operand, op)) : [node]
}
