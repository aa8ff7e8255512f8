import js from "@eslint/js";
import hooks from "eslint-plugin-react-hooks";
import { defineConfig } from "eslint/config";
import ts from "typescript-eslint";

export default defineConfig(
  { ignores: ["node_modules", "src/api/schema.d.ts"] },
  js.configs.recommended,
  ...ts.configs.strictTypeChecked,
  hooks.configs.flat.recommended,
  {
    languageOptions: {
      parserOptions: { projectService: { allowDefaultProject: ["eslint.config.js", "check-messages.mjs", "public/*.js"] } },
      globals: { console: "readonly", process: "readonly", window: "readonly", document: "readonly", location: "readonly", fetch: "readonly", URL: "readonly", localStorage: "readonly", matchMedia: "readonly", navigator: "readonly" },
    },
    rules: {
      // Numbers in texts are safe and common.
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      // TanStack Virtual's hook is not memoised by the React compiler, which we do not use.
      "react-hooks/incompatible-library": "off",
      // `void promise` marks a promise whose failure is shown elsewhere.
      "no-void": "off",
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      // An arrow function that only calls another one is the usual form of an event handler.
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      // Texts come from messages/. Code, keys, values and the name of a format are the same in all languages.
      "no-restricted-syntax": [
        "error",
        { selector: ":not(JSXElement[openingElement.name.name=/^(code|kbd)$/]) > JSXText[value=/^(?!\\s*(JSON|Tradewind|null)\\s*$).*[A-Za-z]{2}/s]", message: "Take the text from messages/." },
        { selector: "JSXAttribute[name.name=/^(title|label|alt|placeholder|aria-label|aria-description)$/] > Literal[value=/[A-Za-z]{2}/]", message: "Take the text from messages/." },
      ],
      // The router uses a thrown redirect, which is not an Error.
      "@typescript-eslint/only-throw-error": "off",
    },
  },
  { files: ["*.js", "*.mjs", "public/*.js"], extends: [ts.configs.disableTypeChecked] },
);
