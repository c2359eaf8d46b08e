//! `#[derive(Explain)]`, which `hocket_base::explain` documents and exports.

#![forbid(unsafe_code)]

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{Attribute, Data, DeriveInput, Error, Fields, Result, parenthesized};

/// Implements `Explain`, `Display` and `Error` from the parts that each case of an error declares.
#[proc_macro_derive(Explain, attributes(explain))]
pub fn explain(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let written = syn::parse(input).and_then(|input| implement(&input));
    written.unwrap_or_else(Error::into_compile_error).into()
}

fn implement(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    let cases = match &input.data {
        Data::Struct(data) => vec![Case::read(quote!(Self), name, &data.fields, &input.attrs)?],
        Data::Enum(data) => {
            let read = data.variants.iter().map(|variant| {
                let case = &variant.ident;
                Case::read(quote!(Self::#case), case, &variant.fields, &variant.attrs)
            });
            read.collect::<Result<_>>()?
        }
        Data::Union(_) => return Err(Error::new_spanned(name, "a union is no error")),
    };
    let parts = cases.iter().map(|case| &case.parts);
    let sources = cases.iter().filter_map(|case| case.source.as_ref());
    let conversions = cases.iter().filter_map(|Case { path, from, .. }| {
        let inner = from.as_ref()?;
        Some(quote! {
            #[automatically_derived]
            impl ::std::convert::From<#inner> for #name {
                fn from(inner: #inner) -> Self { #path(inner) }
            }
        })
    });
    Ok(quote! {
        #[automatically_derived]
        impl ::hocket_base::explain::Explain for #name {
            #[allow(unused_variables)]
            fn parts(&self) -> ::hocket_base::explain::Parts {
                use ::hocket_base::explain::{Explain as _, Parts};
                match self { #(#parts,)* }
            }
        }

        #[automatically_derived]
        impl ::std::fmt::Display for #name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(&::hocket_base::explain::Explain::parts(self), f)
            }
        }

        #[automatically_derived]
        impl ::std::error::Error for #name {
            #[allow(unreachable_patterns)]
            fn source(&self) -> ::std::option::Option<&(dyn ::std::error::Error + 'static)> {
                match self { #(#sources,)* _ => ::std::option::Option::None }
            }
        }

        #(#conversions)*
    })
}

/// A struct, or a variant of an enum.
struct Case {
    path: TokenStream,
    /// The arm of a match that gives its parts.
    parts: TokenStream,
    /// The arm of a match that gives its source, if it has one.
    source: Option<TokenStream>,
    /// Type of the error that `?` makes it of.
    from: Option<TokenStream>,
}

impl Case {
    fn read(path: TokenStream, name: &Ident, fields: &Fields, attrs: &[Attribute]) -> Result<Self> {
        let (mut why, mut of, mut from) = (None, None, None);
        let mut added = TokenStream::new();
        for attribute in attrs.iter().filter(|each| each.path().is_ident("explain")) {
            attribute.parse_nested_meta(|part| {
                let key = part.path.require_ident()?;
                if key == "from" {
                    let Fields::Unnamed(inner) = fields else {
                        return Err(
                            part.error("only a case with one unnamed field is made from it")
                        );
                    };
                    from = inner
                        .unnamed
                        .first()
                        .map(|field| field.ty.to_token_stream());
                    return Ok(());
                }
                let text;
                parenthesized!(text in part.input);
                let text: TokenStream = text.parse()?;
                match key.to_string().as_str() {
                    "why" => why = Some(quote!(Parts::new(::std::format!(#text)))),
                    "of" => of = Some(text),
                    "origin" | "field" | "remedy" => {
                        added.extend(quote!(.#key(::std::format!(#text))))
                    }
                    _ => {
                        return Err(
                            part.error("the keys are why, origin, field, remedy, of and from")
                        );
                    }
                }
                Ok(())
            })?;
        }
        let source = match (&from, &why) {
            (None, _) => None,
            (Some(_), Some(_)) => Some(quote!(#path(inner) => ::std::option::Option::Some(inner))),
            (Some(_), None) => Some(quote!(#path(inner) => ::std::error::Error::source(inner))),
        };
        let inner = from.as_ref().map(|_| quote!(_0.parts()));
        let Some(whole) = why.or(of).or(inner) else {
            let missing = "say why(...), or whose parts it has: of(...) or from";
            return Err(Error::new_spanned(name, missing));
        };
        let bound = fields.iter().enumerate().map(|(i, field)| {
            let unnamed = format_ident!("_{i}");
            field.ident.clone().unwrap_or(unnamed)
        });
        let pattern = match fields {
            Fields::Named(_) => quote!({ #(#bound),* }),
            Fields::Unnamed(_) => quote!((#(#bound),*)),
            Fields::Unit => TokenStream::new(),
        };
        let parts = quote!(#path #pattern => #whole #added);
        Ok(Self {
            path,
            parts,
            source,
            from,
        })
    }
}
