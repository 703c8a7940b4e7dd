import { managedBindingsSuite } from "./managed-bindings-suite.js";

managedBindingsSuite("bindings that directories manage");
